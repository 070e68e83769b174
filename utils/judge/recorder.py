"""Which operators torch dispatches while the solution's code runs, from Python and from C++ alike.

Runs in the runner. A TorchDispatchMode sees every call that reaches the dispatcher on its thread, so `at::mm` in a
binding shows up just as `torch.mm` in forward; launches of the solution's own kernels do not pass there. The record is
evidence for the rules, not a defence: the judge asks for it on calls of its choosing.

A mode can be disabled by who knows how, so there is a second witness that is none: the callbacks of torch's profiler,
which run in C++ before dispatch modes are looked at. Each operator that reaches the mode leaves the mark
`PythonDispatchMode` inside its event; an operator without one ran while the mode was off, and is recorded after all.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
    from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

    _HAVE_WITNESS = True
except ImportError:  # a later torch without it: the mode is the only witness
    _HAVE_WITNESS = False

_MOST_OPS = 512
_MOST_LINES = 8
_SEEN_BY_MODE = "PythonDispatchMode"
# What the record says when somebody switched it off before forward returned.
STOPPED = "harness::recording_stopped"
# Operators whose absence from the mode proves nothing: composites that call no other when there is nothing to do; the
# steps by which torch.tensor and its like bring data to where it belongs, with the mode excluded; and what torch itself
# runs, with modes off, to print a tensor.
_MAY_GO_UNSEEN = """
    to contiguous resolve_conj resolve_neg conj real positive type_as cpu cuda flatten ravel reshape
    reshape_as squeeze unflatten expand_as view_as result_type can_cast promote_types size stride numel dim
    storage_offset data detach requires_grad_ retain_grad output_nr item is_nonzero is_floating_point
    is_complex is_signed is_conj is_neg is_inference is_leaf is_same_size is_pinned _version set_data
    broadcast_tensors broadcast_to atleast_1d _to_copy copy_ detach_ lift_fresh lift alias fill_
    _local_scalar_dense empty empty_strided set_ pin_memory _pin_memory from_file record_stream
    _has_compatible_shallow_copy_type __and__ abs cat ceil div eq gt imag isfinite lt masked_select max min
    mul ne select slice stack unbind narrow split floor log10
"""
_UNPROVEN = frozenset(_MAY_GO_UNSEEN.split())
_empty = torch.empty


class Recorder(TorchDispatchMode):
    """Counts operators by name while it is entered. `folder` is where the solution's files lie."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keeps torch from importing its compiler for the first operator, which takes seconds."""
        return False

    def __init__(self, phase: str, folder: str) -> None:
        super().__init__()
        self._phase = phase
        self._folder = folder.rstrip("/") + "/"
        self._seen: dict[str, dict[str, Any]] = {}
        self._marking = False
        self._witness = False

    def __enter__(self) -> Any:
        if _HAVE_WITNESS:
            try:
                config = ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig())
                _enable_profiler_legacy(config)
                self._witness = True
            except (RuntimeError, TypeError):
                self._witness = False  # somebody else profiles already, or the interface is another
        entered = super().__enter__()
        self._mark()
        return entered

    def __exit__(self, *error: Any) -> None:
        self._mark()
        super().__exit__(*error)
        if self._witness:
            try:
                threads = _disable_profiler_legacy()
            except RuntimeError:
                self._add(STOPPED)
                return
            self._judge_witness(threads)

    def _mark(self) -> None:
        """An operator at each end, to tell whether mode and witness are at work."""
        self._marking = True
        _empty(0, device="cpu")
        self._marking = False

    def _judge_witness(self, threads: Any) -> None:
        """Adds operators that ran while the mode was off. Events of other threads lie below operators, not beside."""
        for events in threads:
            ops = _outermost(events)
            # Without the mode's mark at the start this torch does not leave any, and nothing can be concluded.
            if not ops or ops[0] != ("aten::empty", True):
                continue
            if len(ops) < 2 or ops[-1] != ("aten::empty", True):
                self._add(STOPPED)
            for name, seen in ops:
                if not seen and name.split("::")[1].split(".")[0] not in _UNPROVEN:
                    self._add(name)

    def _add(self, name: str) -> None:
        if name in self._seen or len(self._seen) < _MOST_OPS:
            entry = {"op": name, "count": 0, "phase": self._phase, "python_stack": []}
            self._seen.setdefault(name, entry)["count"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._marking:
            return func(*args, **(kwargs or {}))
        name = func.name() if hasattr(func, "name") else str(func)
        if name not in self._seen and len(self._seen) < _MOST_OPS:
            self._seen[name] = {"op": name, "count": 0, "phase": self._phase, "python_stack": self._stack()}
        if name in self._seen:
            self._seen[name]["count"] += 1
        return func(*args, **(kwargs or {}))

    def ops(self) -> list[dict[str, Any]]:
        return list(self._seen.values())

    def _stack(self) -> list[str]:
        """Lines of the solution on the stack, innermost first."""
        lines: list[str] = []
        frame = sys._getframe(2)
        while frame is not None and len(lines) < _MOST_LINES:
            file = frame.f_code.co_filename
            if file.startswith(self._folder):
                lines.append(f"{file[len(self._folder) :]}:{frame.f_lineno}")
            frame = frame.f_back  # type: ignore[assignment]
        return lines


def _outermost(events: Any) -> list[tuple[str, bool]]:
    """(name, whether a mode saw it or a part of it) of every operator of ATen that is not called by another one.

    Ranges that a user names are looked through, and so are operators of other libraries, unless a mode saw those.
    """
    found: list[tuple[str, bool]] = []
    stack: list[str] = []
    outer, seen = 0, False  # depth of the outermost operator that is open, and whether the mode's mark lies in it
    for event in events:
        kind = event.kind()
        if kind == "push":
            name = event.name()
            stack.append(name)
            if outer and name == _SEEN_BY_MODE:
                seen = True
            elif not outer and (name == _SEEN_BY_MODE or name.startswith("aten::")):
                outer, seen = len(stack), name == _SEEN_BY_MODE
        elif kind == "pop" and stack:
            if len(stack) == outer:
                if stack[-1] != _SEEN_BY_MODE:
                    found.append((stack[-1], seen))
                outer = 0
            stack.pop()
    return found
