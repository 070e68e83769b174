"""The process in which a file of unknown quality runs: limited memory, its own session, findings through a pipe.

Run as a script by limits.py with one JSON argument; everything the file prints goes elsewhere. Each line written to
the pipe is JSON: {"stage": ...} before something is tried, {"finding": ...} after.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    # The script's folder stands first on the path; the repository belongs there, and nothing of the caller's.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    task = json.loads(sys.argv[1])
    with os.fdopen(task["pipe"], "w", encoding="utf-8") as pipe:

        def send(**line: Any) -> None:
            pipe.write(json.dumps(line, default=str) + "\n")
            pipe.flush()

        import torch  # noqa: F401  loaded before the limit, so that the limit is the file's own

        if task["device"] != "cuda":
            # CUDA reserves address space by the terabyte, so there the limit would forbid everything.
            _limit(task["memory"])
        if task["kind"] == "problem":
            from utils.problem.checks.problem_file import findings_of

            path = Path(task["path"])
            for finding in findings_of(
                path, task["device"], task["memory"], task["seconds"], lambda said: send(stage=said)
            ):
                send(finding=finding.as_dict())
        elif task["kind"] == "describe":
            from utils.problem.describe import describe

            send(stage="calling get_inputs()")
            send(finding={"check": "describe", "status": "pass", "sentence": "", "facts": describe(Path(task["path"]))})
        else:
            from utils.problem.checks.solution_state import state_finding

            send(stage="constructing ModelNew")
            send(finding=state_finding(Path(task["problem"]), Path(task["path"])).as_dict())
        send(stage="done")


def _limit(memory: int) -> None:
    """No more address space than there is now plus `memory` bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + memory + (1 << 30)  # threads and allocator arenas take their share
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
