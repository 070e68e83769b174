"""What a problem needs, worked out without allocating it: shapes are followed through fake tensors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from utils.problem.problem import Problem

_LONGEST = 30.0  # seconds of following shapes before giving up; recurrent models take thousands of steps


@dataclass(frozen=True)
class Estimate:
    """Bytes and work of one forward.

    inputs, weights   bytes they occupy
    peak              bytes alive at the same time at worst, inputs, weights and results included
    work              bytes that forward adds to inputs and weights at worst
    flops             multiply-adds x 2 of matrix products and convolutions
    shapes            of the tensors among the inputs, in order
    """

    inputs: int
    weights: int
    peak: int
    work: int
    flops: int
    shapes: list[tuple[int, ...]]


class _Ledger(TorchDispatchMode):
    """Counts the storage alive after each operator, and the work of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[Any, tuple[StorageWeakRef, int]] = {}
        self.peak = 0
        self.flops = 0
        self.until = time.monotonic() + _LONGEST

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            self.flops += int(count(*args, **(kwargs or {}), out_val=result))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.add(tensor)
        if time.monotonic() > self.until:
            raise TimeoutError("following the shapes took too long")
        return result

    def settle(self) -> tuple[int, int]:
        """(bytes alive now, the peak so far); from here on a new peak is measured."""
        self.alive = {key: entry for key, entry in self.alive.items() if not entry[0].expired()}
        now, peak = sum(size for _, size in self.alive.values()), self.peak
        self.peak = now
        return now, peak

    def add(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        known = self.alive.get(key)
        if known is not None and not known[0].expired():
            return
        self.alive[key] = (StorageWeakRef(storage), storage.nbytes())
        total = sum(size for _, size in self.alive.values())
        if total > self.peak:
            self.alive = {key: entry for key, entry in self.alive.items() if not entry[0].expired()}
            self.peak = max(self.peak, sum(size for _, size in self.alive.values()))


@contextmanager
def followed() -> Iterator[None]:
    """Tensors made inside have shapes but no memory; what torch logs of shapes that do not fit is left unsaid."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        log.setLevel(level)


def estimate(
    problem: Problem,
    inputs: Callable[[], list[Any]],
    small: bool = False,
    stage: Callable[[str], None] = lambda said: None,
) -> Estimate | None:
    """The needs of Model(*init)(*inputs()), or None when shapes cannot be followed (they depend on data, say).

    `stage` is told which of the file's functions runs next: it is their first call.
    """
    state = torch.get_rng_state()
    try:
        with followed(), _Ledger() as ledger, torch.no_grad():
            given = inputs()
            tensors = tensors_in(given)
            stage("constructing Model")
            model = problem.model(small).eval()
            weights = [*model.parameters(), *model.buffers()]
            before, drawn = ledger.settle()
            stage("running forward")
            result = model(*given)
            del result
            return Estimate(
                sum(map(_bytes, tensors)),
                sum(map(_bytes, weights)),
                max(drawn, ledger.peak),
                ledger.peak - before,
                ledger.flops,
                [tuple(tensor.shape) for tensor in tensors],
            )
    except Exception:
        # Whatever is wrong with the file shows, with its own message, when it is run for real.
        return None
    finally:
        torch.set_rng_state(state)


def input_bytes(inputs: Callable[[], list[Any]]) -> int | None:
    """Bytes of the inputs alone."""
    try:
        with followed():
            return sum(map(_bytes, tensors_in(inputs())))
    except Exception:
        return None


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
