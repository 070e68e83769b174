"""The work a problem cannot avoid: floating-point operations and bytes, counted from the reference on meta tensors.

Nothing is allocated or computed: parameters and inputs become meta tensors and forward runs once under a dispatch
mode. What is exact and what is a guess is kept apart, because a bound is only as good as its weakest term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# Instructions a GPU spends per element on a function that is no single instruction: an order of magnitude, and marked
# as an estimate wherever it is used. Everything not named counts one.
_COSTLY = {
    "exp": 8, "exp2": 4, "expm1": 12, "log": 8, "log2": 4, "log1p": 12, "log10": 8, "sin": 16, "cos": 16, "tan": 24,
    "tanh": 12, "sigmoid": 10, "silu": 12, "gelu": 16, "mish": 24, "erf": 16, "erfinv": 24, "softplus": 20, "elu": 10,
    "selu": 10, "logsigmoid": 20, "pow": 16, "sqrt": 4, "rsqrt": 4, "div": 4, "reciprocal": 4, "_softmax": 12,
    "_log_softmax": 12, "native_layer_norm": 8, "native_batch_norm": 8, "native_group_norm": 8, "hardswish": 4,
}  # fmt: skip
# Operations that move data and compute nothing.
_MOVES = {
    "clone", "copy", "_to_copy", "cat", "stack", "empty", "empty_like", "zeros", "zeros_like", "ones", "full", "fill",
    "index_select", "gather", "embedding", "constant_pad_nd", "contiguous", "arange", "new_empty",
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """FLOP (a multiply-add is two) and bytes of one forward.

    matrix_flop: matmul, convolution and attention, exact for the reference's algorithm (torch FlopCounterMode's
    formulas). other_flop: everything else, estimated per element. bytes_*: inputs, used parameters and buffers, and
    outputs, each counted once at its own dtype. notes: what the figures leave out or guess.
    """

    matrix_flop: int
    other_flop: int
    bytes_in: int
    bytes_parameters: int
    bytes_out: int
    matrix_by_op: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.bytes_in + self.bytes_parameters + self.bytes_out


def count(model: torch.nn.Module, inputs: Sequence[Any], keywords: Mapping[str, Any] | None = None) -> Work | str:
    """The work of `model(*inputs, **keywords)`; a sentence where forward cannot run on meta tensors (data-dependent
    control flow).

    The model and the inputs are not touched; both may live on any device.
    """
    import torch
    from torch.func import functional_call
    from torch.utils.flop_counter import FlopCounterMode

    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    ghosts: dict[int, torch.Tensor] = {}

    def ghost(tensor: torch.Tensor) -> torch.Tensor:
        # One ghost per tensor, so that tied weights stay tied.
        if id(tensor) not in ghosts:
            ghosts[id(tensor)] = _meta(tensor)
        return ghosts[id(tensor)]

    parameters = {name: ghost(tensor) for name, tensor in state.items()}
    arguments, named = changed(inputs, ghost), changed(keywords or {}, ghost)
    ledger = _ledger(
        owned={_storage(tensor): tensor for tensor in parameters.values()},
        given={_storage(tensor): tensor for tensor in walk([arguments, named])},
    )
    counter = FlopCounterMode(display=False)
    try:
        with torch.no_grad(), torch.device("meta"), counter, ledger:
            output = functional_call(model, parameters, tuple(arguments), named)
    except Exception as error:
        message = " ".join(str(error).split())[:160]
        return (
            f"the work could not be counted: forward does not run on meta tensors ({type(error).__name__}: {message})"
        )
    by_op = {
        str(op).replace("aten.", ""): int(flop) for op, flop in counter.get_flop_counts().get("Global", {}).items()
    }
    read = {**ledger.used}
    out = {_storage(tensor): _nbytes(tensor) for tensor in walk(output) if _storage(tensor) not in read}
    notes = list(dict.fromkeys(ledger.notes))
    if ledger.other:
        notes.append("operations other than matmul, convolution and attention are estimated per element")
    return Work(
        matrix_flop=sum(by_op.values()),
        other_flop=ledger.other,
        bytes_in=sum(size for key, size in read.items() if key in ledger.given and key not in ledger.owned),
        bytes_parameters=sum(size for key, size in read.items() if key in ledger.owned),
        bytes_out=sum(out.values()),
        matrix_by_op=by_op,
        notes=tuple(notes),
    )


def multiplies(counted: Work | str) -> bool:
    """Whether there are matrix products or convolutions, to which TF32 applies; yes where it is not known."""
    return isinstance(counted, str) or counted.matrix_flop > 0


def _ledger(owned: Mapping[int, torch.Tensor], given: Mapping[int, torch.Tensor]) -> Any:
    """A dispatch mode that notes which parameters and inputs are read, and estimates the non-matrix operations."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten

    class Ledger(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.owned, self.given = owned, given
            self.used: dict[int, int] = {}
            self.other = 0
            self.notes: list[str] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            # A view moves and computes nothing; its storage is noted when something reads it.
            if not function.is_view:
                self._note_reads(function, args, kwargs or {})
                packet = function.overloadpacket
                if packet not in flop_registry:
                    name = packet.__name__.rstrip("_") if packet.__name__ not in _COSTLY else packet.__name__
                    size = max((t.numel() for t in walk([args, kwargs or {}, result])), default=0)
                    self.other += 0 if name in _MOVES else size * _COSTLY.get(name, 1)
            return result

        def _note_reads(self, function: Any, args: Any, kwargs: Any) -> None:
            for position, tensor in enumerate(walk([args, kwargs])):
                key = _storage(tensor)
                source = self.owned.get(key, self.given.get(key))
                if source is None:
                    continue
                size = _nbytes(source)
                if function is aten.embedding.default and position == 0:
                    size = min(size, args[1].numel() * tensor.shape[-1] * tensor.element_size())
                    self.notes.append("an embedding counts the rows it gathers, not the table")
                self.used[key] = max(self.used.get(key, 0), size)

    return Ledger()


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    """A meta tensor of the same shape, strides and dtype, in a storage of its own."""
    import torch

    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _nbytes(tensor: torch.Tensor) -> int:
    """Bytes of the distinct elements: an expanded tensor stores fewer than it shows."""
    distinct = math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
    return distinct * tensor.element_size() if tensor.numel() else 0


def walk(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from walk(item)


def changed(value: Any, change: Any) -> Any:
    """`value` with every tensor changed, containers rebuilt as plain list, tuple and dict (named tuples kept)."""
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: changed(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(changed(item, change) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(changed(item, change) for item in value)
    return value
