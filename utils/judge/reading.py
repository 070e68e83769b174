"""The rules, read in a process of their own while the judge imports torch: both are Python, and would share one lock.

The process is the judge's: it runs the workbench's code alone, and reads the solution's files without running them.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from utils.present.outcome import Outcome
from utils.problem.solution import Solution
from utils.problem.workspace import ROOT

if TYPE_CHECKING:
    from utils.rules import Violation

# Only `utils` itself is taken from the repository: a stray json.py of a workspace must not win over the real one.
_BOOT = """
import importlib.util, sys
home, sys.path[:] = sys.argv[1], sys.argv[2:]
spec = importlib.util.spec_from_file_location("utils", home + "/__init__.py", submodule_search_locations=[home])
sys.modules["utils"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from utils.judge.reading import main
main()
"""


class Reading:
    """Reads `solution` against the rules that need nothing but its files; `problem` tells what Model does.

    `done` waits until all is read, `result` for what came of it. Leaving the context gives up what is not read yet.
    """

    def __init__(self, solution: Solution, problem: Path) -> None:
        paths = [entry for entry in sys.path if entry]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _BOOT, str(ROOT / "utils"), *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as orders:
            orders.write(pickle.dumps((solution, problem)))
        self._said = b""
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def done(self) -> None:
        self._listening.join()

    def result(self) -> list[Violation]:
        """Every breach found. Raises what reading raised (CannotTell for a file that is no Python)."""
        self.done()
        if self._process.wait() != 0 or not self._said:
            raise RuntimeError(f"the process that reads the rules ended with {self._process.returncode}")
        found = pickle.loads(self._said)
        if isinstance(found, Outcome):
            raise found
        if isinstance(found, str):
            raise RuntimeError(f"the rules could not be read:\n{found}")
        return list(found)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self.done()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answer:
            self._said = answer.read()


def main() -> None:
    """The other end: a solution and a problem come in, breaches or an exception go out."""
    # An interrupt is the judge's to tell of; it ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    solution, problem = pickle.load(sys.stdin.buffer)
    found: object
    try:
        from utils import rules

        found = rules.static_violations(solution, problem)
    except Outcome as error:
        found = error
    except Exception:
        found = traceback.format_exc()
    answer.write(pickle.dumps(found))
    answer.flush()
