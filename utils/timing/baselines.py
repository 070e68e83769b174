"""The judge's end of the baseline processes: sessions like a solution's, with the problem file in the solution's place.

One process per precision, because torch's precision flags and the compiler's guards are global to a process, and as a
rule per mode of torch.compile (utils.timing.variants.process_of). Inductor and Triton write into a fresh private
folder, so that nothing compiled for another model.py, another version or another run is ever timed, and cold and warm
runs are the same run. No sandbox: no solution code ever runs here.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.judge.failure import RunnerFailed
from utils.judge.protocol import Channel
from utils.judge.sandbox import Policy
from utils.problem.workspace import ROOT
from utils.timing.quiet import PATIENCE
from utils.timing.sessions import TimedSession, accept_replies
from utils.timing.variants import Variant
from utils.timing.work import Work

# Only `utils` itself is taken from the repository: with the repository on sys.path a stray torch.py or json.py of a
# workspace would win over the real one.
_BOOT = """
import importlib.util, sys
root, number = sys.argv[1], int(sys.argv[2])
home = root + "/utils"
spec = importlib.util.spec_from_file_location("utils", home + "/__init__.py", submodule_search_locations=[home])
sys.modules["utils"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from utils.timing.baseline_worker import main
main(number)
"""
accept_replies(
    {
        "prepare": {
            **dict.fromkeys(("seconds", "waited", "measured"), float),
            **dict.fromkeys(("graphs", "graph_breaks", "missed"), int),
        },
        "select": {"recompiled": int},
        "work": {"work": dict, "why": str},
        "rates": {"rates": dict},
    }
)


@dataclass
class Built:
    """How one variant came to be; `error` set when it did not. difference: rms error over the reference's rms.

    seconds: of building, without those `waited` for a quiet GPU. measured: those of them in which the compiler timed
    candidates. missed: timings of the compiler made on a GPU that was not quiet, because the wait had grown too long.
    """

    variant: Variant
    seconds: float = 0.0
    graphs: int = 0
    graph_breaks: int = 0
    recompiled: int = 0
    difference: float | None = None
    error: str | None = None
    waited: float = 0.0
    measured: float = 0.0
    missed: int = 0


class BaselineProcess:
    """What a Session needs of a process, for a trusted one: a channel, its output in a file, an end."""

    memory_exceeded = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kernel-workbench-baseline-"))
        ours, theirs = socket.socketpair()
        with open(self.folder / "output.txt", "wb") as output, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(ROOT), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                cwd=self.folder,
                env=_environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.channel = Channel(ours)
        self.output = self

    def settle_in(self, timeout: float) -> None:
        """Nothing to wait for: there is no sandbox to enter."""

    def exit_status(self, wait: float = 2.0) -> int | None:
        try:
            return self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return None

    def left_behind(self) -> list[str]:
        """Compile workers are this process's own affair; `kill` ends them."""
        return []

    def threads(self) -> int:
        return 0

    def tail(self, characters: int) -> str:
        """The end of what the process wrote."""
        with suppress(OSError):
            return (self.folder / "output.txt").read_bytes()[-characters:].decode(errors="replace")
        return ""

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self.channel.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class BaselineSession(TimedSession):
    """Baselines of one precision. Every method of Session works; `prepare` and `select` choose what `call` calls."""

    def __init__(
        self,
        problem: Path,
        device: str,
        precision: str,
        *,
        timeout: float = 60.0,
        build_timeout: float = 300.0,
        quiet: Path | None = None,
    ) -> None:
        """quiet: the lock that the compiler's timings wait for, see utils.timing.quiet; None where nobody else works
        on the GPU meanwhile."""
        self.problem, self.precision, self.build_timeout = problem, precision, build_timeout
        self._quiet = quiet
        self.built: dict[str, Built] = {}
        self._selected = ""
        self.begin(device, timeout, Policy(sandbox=False))
        self.process = BaselineProcess()  # type: ignore[assignment]

    def ready(self, before_import: Callable[[], object] | None = None) -> dict[str, Any]:
        """Waits until the process stands and has read the problem; its facts. Nothing need be kept from it."""
        request = {"device": self.device_name, "folder": str(self.problem.parent), "simulated": False}
        self.facts = self._ask("hello", request, timeout=max(120.0, self.timeout))
        quiet = str(self._quiet) if self._quiet else ""
        request = {"problem": str(self.problem), "precision": self.precision, "quiet": quiet}
        self.facts["after import"] = self._ask("import", request, timeout=max(120.0, self.timeout))
        return self.facts

    def prepare(self, variant: Variant, inputs: Any) -> Built:
        """Builds one variant on `inputs`; a failure is an answer, not an exception."""
        assert variant.precision == self.precision
        timeout = self.build_timeout + (PATIENCE if self._quiet else 0.0)
        try:
            answer = self._ask("prepare", {**self.delivered(inputs), "mode": variant.mode}, timeout=timeout)
            names = ("seconds", "waited", "measured", "missed", "graphs", "graph_breaks")
            built = Built(variant, **{name: answer[name] for name in names})
        except RunnerFailed as failed:
            built = Built(variant, error=told(failed))
        self.built[variant.mode] = built
        return built

    def select(self, mode: str) -> None:
        """Makes a prepared variant the one that is called."""
        answer = self._ask("select", {"mode": mode})
        if self._selected in self.built:
            self.built[self._selected].recompiled += answer["recompiled"]
        self._selected = mode

    def work(self, inputs: Any) -> Work | str:
        """The work of one call of the model, or why it could not be counted. It needs no turn at the GPU."""
        answer = self._ask("work", self.delivered(inputs))
        counted = answer["work"]
        return Work(**{**counted, "notes": tuple(counted["notes"])}) if counted else answer["why"]

    def rates(self, precisions: list[str]) -> dict[str, Any]:
        """limits.Rates of the device, as a dict."""
        return self._ask("rates", {"precisions": precisions}, timeout=120.0)["rates"]

    def close(self) -> list[str]:
        """Ends the process at once: it holds nothing that is wanted, and a polite end takes a second."""
        if self.alive:
            self._end()
        return []

    def _end(self) -> None:
        self.alive = False
        self.process.kill()


def told(failed: RunnerFailed) -> str:
    """A baseline's failure in one line, without the words for a solution."""
    details = failed.details
    if details.get("type"):
        return f"{details['type']}: {(details.get('message') or 'no message').strip().splitlines()[0][:300]}"
    lines = [line for line in failed.output.splitlines() if line.strip()]
    return failed.sentence.replace("the solution's process", "the baseline process") + (
        f" ({lines[-1].strip()[:200]})" if lines else ""
    )


def _environment(folder: Path) -> dict[str, str]:
    private = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        # The remote and shared caches of a site must not answer either.
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # These would change what is timed, or make torch.compile do nothing.
    dropped = {"PYTHONOPTIMIZE", "PYTHONSTARTUP", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, **private}
