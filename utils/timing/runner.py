"""The runner with a few more requests, none of which decides a verdict: calls back to back, graph replay, kernels.

    burst     `count` calls one after another, nothing between them     the judge times the request from outside
    replay    timed replays of a CUDA graph of forward                  {"ms": [...]}
    kernels   the kernels of one call, by torch.profiler                {"kernels": [...]}
    profiled  one call between the marks of an outer profiler           {}

Runs in the solution's process and, unchanged, in the baselines': whatever is timed is timed by the same code.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import torch

from utils.judge.protocol import Channel
from utils.judge.runner import Runner
from utils.native import library
from utils.timing import kernels

_no_grad = torch.no_grad


class TimedRunner(Runner):
    """See the head of this file; the inherited `call` is what verdicts rest on."""

    def do_burst(self, request: dict[str, Any]) -> dict[str, Any]:
        """`count` calls on the same inputs, then a wait for the device."""
        arguments, keywords = self._arguments(request)
        with self._on_stream(), self._solution("forward"), _no_grad():
            for _ in range(request["count"]):
                self._model(*arguments, **keywords)
            self._synchronize()
        return {}

    def do_replay(self, request: dict[str, Any]) -> dict[str, Any]:
        """Captures one call into a CUDA graph and times `count` replays, the L2 flushed before each."""
        arguments, keywords = self._arguments(request)
        if not self._cuda:
            return {"ms": [], "why": "CUDA graphs need a GPU"}
        times = []
        try:
            with self._on_stream(), _no_grad():
                for _ in range(3):
                    self._model(*arguments, **keywords)
                self._synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=self._stream):
                    kept = self._model(*arguments, **keywords)
                for _ in range(request["count"]):
                    self._timer.flush_l2()
                    times.append(self._timer.time(graph.replay)[1])
                self._synchronize()
                del kept, graph
        except Exception as error:
            # Code that waits for the device or allocates outside torch cannot be captured: a fact, not a fault.
            return {
                "ms": [],
                "why": f"cannot be captured into a CUDA graph: {' '.join(str(error).split())[:200]}",
            }
        return {"ms": times, "why": ""}

    def do_kernels(self, request: dict[str, Any]) -> dict[str, Any]:
        """The kernels of one call after a warm one."""
        arguments, keywords = self._arguments(request)
        try:
            with self._on_stream(), _no_grad():
                return {"kernels": kernels.record(lambda: self._model(*arguments, **keywords), self._device), "why": ""}
        except Exception as error:
            return {"kernels": [], "why": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}

    def do_profiled(self, request: dict[str, Any]) -> dict[str, Any]:
        """One warm call, and one between the marks at which an outer profiler (ncu, nsys) starts and stops."""
        arguments, keywords = self._arguments(request)
        with self._on_stream(), self._solution("forward"), _no_grad():
            self._model(*arguments, **keywords)
            self._synchronize()
            torch.cuda.profiler.start()
            self._model(*arguments, **keywords)
            self._synchronize()
            torch.cuda.profiler.stop()
        return {}

    def do_tune(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sets configurations in the table that utils.timing.sites put at the end of the solution's file."""
        with self._solution("tune"):
            getattr(sys.modules[self._class.__module__], request["table"]).update(request["values"])
        return {}

    def _arguments(self, request: dict[str, Any]) -> tuple[Any, Any]:
        """Arguments of forward, with the judge's values delivered to where forward reads them."""
        with self._on_stream(), _no_grad():
            self._deliver([(self._bytes(source), self._bytes(live)) for source, live in request["deliver"]])
            self._synchronize()
        return self._inputs[request["inputs"]][:2]


def main(fd: int) -> None:
    """Serves the judge on the socket `fd` until told to stop."""
    library.load()
    TimedRunner(Channel(socket.socket(fileno=fd))).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
