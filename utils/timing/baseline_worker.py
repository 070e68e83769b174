"""The baseline process: eager and torch.compile variants of Model, run by the very code that runs a solution.

It is a runner (utils.judge.runner) whose "solution" is the problem file itself, with one process per precision and mode
of torch.compile. On top of the runner's requests:

    prepare   builds a variant (mode) and runs it until it is warm    {"seconds", "graphs", "graph_breaks", "waited",
                                                                      "measured", "missed"}
    select    makes a prepared variant the one that `call` calls      {"recompiled": graphs since the last look}
    work      FLOP and bytes of forward (utils.timing.work)           {"work": {...}, "why": ""}
    rates     what the device itself can do                           {"rates": {...}}
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from utils.judge.processes import descendants
from utils.judge.protocol import Channel
from utils.native import library
from utils.problem.problem import load_problem
from utils.timing import limits, work
from utils.timing.quiet import Quiet
from utils.timing.runner import TimedRunner
from utils.timing.variants import AS_IT_COMES


class BaselineRunner(TimedRunner):
    """One model, one precision (torch's flags are global to a process), several modes."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self._eager: Any = None
        self._prepared: dict[str, Callable[..., Any]] = {}
        self._compiled = 0
        self._quiet: Quiet | None = None

    def do_import(self, request: dict[str, Any]) -> dict[str, Any]:
        """The problem file, under the flags of `precision`; a failure is told like a solution's."""
        self._precision = request["precision"]
        if self._precision != AS_IT_COMES:
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.backends.cudnn.allow_tf32 = True
        with self._solution("import"):
            self._class = load_problem(Path(request["problem"])).Model
        if request["quiet"]:
            self._quiet = Quiet(Path(request["quiet"]))
        if self._cuda:
            # The judge is busy with its own copy of the problem meanwhile. A failure will be told by `prepare`.
            with contextlib.suppress(Exception):
                _load_compiler(self._quiet)
        return {"flags": {name: str(value) for name, value in flags().items()}, "build": {}}

    def do_prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        from torch._dynamo.utils import counters

        if self._eager is None:
            self._eager = self._model
        mode = request["mode"]
        arguments, keywords = self._arguments(request)
        graphs, breaks = _graphs(counters), sum(counters["graph_break"].values())
        waited, measured, missed = self._turns()
        began = time.perf_counter()
        try:
            with self._on_stream(), self._solution("forward"), torch.no_grad():
                function = self._variant(mode)
                # CUDA-graph modes record on the second call and replay from the third.
                for _ in range(4):
                    function(*arguments, **keywords)
                self._synchronize()
        finally:
            if mode != "eager":
                _end_compile_workers()
        self._prepared[mode] = function
        self._compiled = _graphs(counters)
        waited_now, measured_now, missed_now = self._turns()
        return {
            "seconds": time.perf_counter() - began - (waited_now - waited),
            "waited": waited_now - waited,
            "measured": measured_now - measured,
            "missed": missed_now - missed,
            "graphs": self._compiled - graphs,
            "graph_breaks": sum(counters["graph_break"].values()) - breaks,
        }

    def do_select(self, request: dict[str, Any]) -> dict[str, Any]:
        from torch._dynamo.utils import counters

        # Every compilation outside `prepare` happened while something was timed.
        new, self._compiled = _graphs(counters) - self._compiled, _graphs(counters)
        self._model = self._prepared[request["mode"]]
        return {"recompiled": new}

    def do_work(self, request: dict[str, Any]) -> dict[str, Any]:
        """Asked here because counting loads the compiler, for which this process has a use of its own."""
        arguments, keywords = self._arguments(request)
        model = self._model if self._eager is None else self._eager
        with self._solution("forward"):
            counted = work.count(model, arguments, keywords)
        return {"work": {}, "why": counted} if isinstance(counted, str) else {"work": asdict(counted), "why": ""}

    def do_rates(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._solution("forward"):
            return {"rates": asdict(limits.measure(self._device, tuple(request["precisions"])))}

    def _turns(self) -> tuple[float, float, int]:
        quiet = self._quiet
        return (quiet.waited, quiet.held, quiet.missed) if quiet else (0.0, 0.0, 0)

    def _variant(self, mode: str) -> Callable[..., Any]:
        """Model run in `mode`, at this process's precision."""
        call: Callable[..., Any] = self._eager
        if mode == "compile":
            call = torch.compile(self._eager)
        elif mode != "eager":
            call = _graph_steps(torch.compile(self._eager, mode=mode), self._cuda)
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self._precision)
        return call if half is None else _autocast(call, self._device.type, half)


def _load_compiler(quiet: Quiet | None) -> None:
    """Imports the compiler and starts its workers, as the first torch.compile would, and has its timings take turns."""
    from torch._inductor import async_compile, compile_fx  # noqa: F401
    from torch._inductor.runtime.benchmarking import benchmarker

    async_compile.maybe_warm_pool()
    if quiet is None:
        return
    measure = benchmarker.benchmark_gpu

    def alone(*arguments: Any, **keywords: Any) -> Any:
        with quiet.hold():
            return measure(*arguments, **keywords)

    # On the instance: all of inductor measures through this one.
    benchmarker.benchmark_gpu = alone  # type: ignore[method-assign]


def _end_compile_workers() -> None:
    """Nothing of a build may still burn the processor when times are taken. A later compilation starts them again."""
    loaded = sys.modules.get("torch._inductor.async_compile")
    if loaded is not None:
        with contextlib.suppress(Exception):
            # Asked to end they take seconds, of processor time too, to leave Python.
            for pid in chain.from_iterable(descendants(pool.process.pid) for pool in loaded._pool_set):
                os.kill(pid, signal.SIGKILL)
            loaded.shutdown_compile_workers()


def _graph_steps(call: Callable[..., Any], cuda: bool) -> Callable[..., Any]:
    """Tells a CUDA-graph mode that a new step begins: the judge has copied the last result out by then."""

    def stepped(*arguments: Any, **keywords: Any) -> Any:
        if cuda:
            torch.compiler.cudagraph_mark_step_begin()
        return call(*arguments, **keywords)

    return stepped


def _autocast(call: Callable[..., Any], device: str, dtype: torch.dtype) -> Callable[..., Any]:
    def cast(*arguments: Any, **keywords: Any) -> Any:
        with torch.autocast(device, dtype=dtype):
            return call(*arguments, **keywords)

    return cast


def _graphs(counters: Any) -> int:
    return int(counters["stats"]["unique_graphs"])


def flags() -> dict[str, Any]:
    """torch's global settings that change what a baseline computes or how fast."""
    return {
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "default dtype": torch.get_default_dtype(),
    }


def main(fd: int) -> None:
    """Serves the judge on the socket `fd` until told to stop."""
    library.load()
    BaselineRunner(Channel(socket.socket(fileno=fd))).serve()
