"""Sessions that can also be profiled: the judge's Session with the three requests of utils.timing.runner."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from utils.judge import replies
from utils.judge.sandbox import Policy, Process, import_path
from utils.judge.session import Session
from utils.judge.staging import prepare
from utils.problem.solution import Solution
from utils.problem.workspace import ROOT

# What the runner's extra requests need of the harness, staged beside the judge's own files.
_STAGED = ("timing/__init__.py", "timing/runner.py", "timing/kernels.py")

_ENTRY = (
    "import sys; sys.path[:] = sys.argv[1].split(':'); from utils.timing import runner; runner.main(int(sys.argv[2]))"
)


def accept_replies(fields: Mapping[str, Mapping[str, type]]) -> None:
    """Declares the answers of more requests, by the type of each field, so that the session refuses anything else."""
    for op, names in fields.items():
        replies._FIELDS[op] = {name: _of(kind) for name, kind in names.items()}


def _of(kind: type) -> Callable[[Any], bool]:
    kinds = (int, float) if kind is float else (kind,)
    return lambda value: isinstance(value, kinds) and not (isinstance(value, bool) and kind is not bool)


accept_replies({"burst": {}, "profiled": {}, "tune": {}, "kernels": {"kernels": list, "why": str}})
replies._FIELDS["replay"] = {"ms": replies._times, "why": _of(str)}


class TimedSession(Session):
    """A session whose runner also answers `burst`, `replay` and `kernels`."""

    timed = True

    def __init__(
        self,
        solution: Solution,
        device: str,
        *,
        module: Path | None = None,
        policy: Policy | None = None,
        timeout: float = 60.0,
    ) -> None:
        from utils.native import library

        self.solution = solution
        self.begin(device, timeout, policy or Policy())
        self.stage = prepare(solution, module, library.path())
        try:
            for name in _STAGED:
                target = self.stage.harness / "utils" / name
                target.parent.mkdir(mode=0o755, exist_ok=True)
                shutil.copyfile(ROOT / "utils" / name, target)
                target.chmod(0o644)
            self.process = Process(self.stage, self._policy, self._entry(), {})
        except BaseException:
            self.stage.remove()
            raise

    def _entry(self) -> list[str]:
        """What the interpreter in the sandbox is started with; the socket's number is added behind it."""
        path = ":".join([str(self.stage.harness), *import_path(self.stage)])
        return ["-c", _ENTRY, path]

    def begin(self, device: str, timeout: float, policy: Policy) -> None:
        """The state of a session that has not asked anything yet."""
        self.device_name, self.timeout, self._policy = device, timeout, policy
        self.simulated = False
        self.alive = True
        self.facts: dict[str, Any] = {}
        self.left_behind: list[str] = []
        self._announce: list[tuple[dict[str, Any], list[list[int]], int]] = []
        self._next = 0
        self._asking = threading.RLock()

    def end_to_end_ms(self, inputs: Any, estimate_ms: float) -> float:
        """Milliseconds per call, launch and Python included, caches warm: the slope of the judge's wall clock over the
        number of calls, so that what a request costs by itself drops out."""
        few = max(4, min(500, round(15.0 / max(estimate_ms, 0.01))))
        self._burst(inputs, few)
        slopes = []
        for _ in range(3):
            short, long = self._burst(inputs, few), self._burst(inputs, 4 * few)
            slopes.append((long - short) / (3 * few) * 1e3)
        return sorted(slopes)[1]

    def replay(self, inputs: Any, count: int) -> tuple[list[float], str]:
        """Milliseconds of `count` CUDA-graph replays, or none and the reason."""
        answer = self._ask("replay", {**self.delivered(inputs), "count": count})
        return answer["ms"], answer["why"]

    def kernels(self, inputs: Any) -> tuple[list[Any], str]:
        """The kernel events of one call as the runner tells them, or none and the reason."""
        answer = self._ask("kernels", self.delivered(inputs), timeout=max(60.0, self.timeout))
        return answer["kernels"], answer["why"]

    def tune(self, table: str, values: Mapping[str, int]) -> None:
        """Sets the configurations that the calls to come use; see utils.timing.sites."""
        self._ask("tune", {"table": table, "values": dict(values)})

    def delivered(self, inputs: Any) -> dict[str, Any]:
        """The part of a request that names inputs, their values ready to be taken."""
        inputs.deliver()
        self._settle_judge()
        return {"inputs": inputs.id, "deliver": inputs.deliveries()}

    def _burst(self, inputs: Any, count: int) -> float:
        request = {**self.delivered(inputs), "count": count}
        begun = time.perf_counter()
        self._ask("burst", request, timeout=self.timeout * 4)
        return time.perf_counter() - begun
