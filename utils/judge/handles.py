"""Inputs and outputs of calls, as the judge holds them: memory shared with the runner, and what it should contain.

Tensors that share storage (the same tensor given twice, a view and its base) share a slot, at the same distances, so
that forward sees the aliasing that get_inputs made. Strides are kept as they are, overlapping ones included.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from utils.judge import structure
from utils.judge.memory import Block, span_bytes
from utils.judge.thrift import Thrift
from utils.judge.tolerance import Tolerance, tell
from utils.native.compare import compare
from utils.native.poison import poison
from utils.present.outcome import CannotTell

if TYPE_CHECKING:
    from utils.judge.session import Session

_PIECE = 256 << 20

_seeds = itertools.count(0x9E3779B9, 0x61C88647)


@dataclass
class _Group:
    """Tensors over one storage: the bytes they touch, and what they should hold, in the judge's own memory."""

    low: int
    high: int
    pristine: torch.Tensor
    names: list[str]


class Inputs:
    """Arguments of a call. With `live`, each group has two slots: forward sees one, values come from the other.

    `pristine` never leaves the judge's memory: it is what the reference gets a copy of, and what a slot must still hold
    after the call. It is no copy where the values lie in the right place already: whoever gives them keeps them as they
    are until the next ones.
    """

    def __init__(
        self,
        session: Session,
        args: list[Any],
        kwargs: dict[str, Any],
        *,
        live: bool,
        shift: int = 0,
    ) -> None:
        self.id = session.number()
        self._session = session
        self._live = live
        self._shift = shift
        self._leaves: list[tuple[str, torch.Tensor]] = []
        self._memory: dict[int, torch.Tensor] = {}  # what the reference works on
        self._groups: dict[int, _Group] = {}
        self._collect(args, kwargs)
        sizes = [group.high - group.low for group in self._groups.values()]
        self._live_block = self._block(sizes, shift)
        # Short of memory, values are written straight to where forward reads them.
        self._source_block = self._block(sizes) if live and not session.thrift else None
        self.nodes: tuple[list[structure.Node], dict[str, structure.Node]] = self._nodes(args, kwargs)
        self._shape = structure_of(self.nodes)
        self._write()

    def rewrite(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> None:
        """New values at the same addresses. Raises ValueError when structure, sizes, strides or dtypes differ."""
        leaves, groups, nodes = self._leaves, self._groups, self.nodes
        self._leaves, self._groups = [], {}
        self._collect(list(args), dict(kwargs or {}))
        fresh = self._nodes(list(args), dict(kwargs or {}))
        if structure_of(fresh) != self._shape or [g.high - g.low for g in groups.values()] != [
            g.high - g.low for g in self._groups.values()
        ]:
            self._leaves, self._groups, self.nodes = leaves, groups, nodes
            raise ValueError("the new inputs differ from the old ones in structure, size, stride or dtype")
        self._write()
        if plain_of(fresh) != plain_of(nodes):
            self.nodes = fresh
            self._session.replace(self)

    def move(self) -> None:
        """The same values at new addresses, as new tensor objects."""
        old = self._live_block
        sizes = [group.high - group.low for group in self._groups.values()]
        self._live_block = self._block(sizes, self._shift)
        self._renumber(old, self._live_block)
        self._memory = {}
        self._session.replace(self)
        if old is not None:
            self._session.forget(old)

    def deliver(self) -> None:
        """Puts the values where the runner takes them from: a runner that wrote there before gains nothing."""
        self._write()

    def deliveries(self) -> list[list[int]]:
        """[source slot, live slot] pairs."""
        if self._source_block is None or self._live_block is None:
            return []
        return [list(pair) for pair in zip(self._source_block.slots, self._live_block.slots, strict=True)]

    def spans(self) -> list[list[Any]]:
        """[live slot, name] for each group, to see outputs that alias inputs."""
        if self._live_block is None:
            return []
        return [
            [slot, ", ".join(group.names)]
            for slot, group in zip(self._live_block.slots, self._groups.values(), strict=True)
        ]

    def values(self) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for the reference, over copies of its own.

        They lie where those of the call before lay, and elsewhere after `move`, as they do for the solution: a model
        that keeps its input sees it change on both sides.
        """
        memory = self._memory
        if list(memory) != list(self._groups):
            # After a rewrite the groups have other keys, in the same order.
            memory = dict(zip(self._groups, memory.values(), strict=False))
        for key, group in self._groups.items():
            if key in memory and memory[key].numel() == group.pristine.numel():
                memory[key].copy_(group.pristine)
            else:
                memory[key] = group.pristine.to(self._session.device, copy=True)
        self._memory = memory
        queue = iter(self._leaves)

        def leaf(node: structure.Node) -> torch.Tensor:
            _, tensor = next(queue)
            if tensor.numel() == 0:
                return torch.empty(tensor.shape, dtype=tensor.dtype, device=self._session.device)
            key = _storage(tensor)
            group = self._groups[key]
            begin = _begin(tensor) - group.low
            flat = memory[key][begin : begin + span_bytes(tensor.shape, tensor.stride(), tensor.itemsize)]
            value = _typed(flat, tensor.dtype).as_strided(tensor.shape, tensor.stride())
            return value.requires_grad_() if tensor.requires_grad else value

        args = [structure.decode(node, leaf) for node in self.nodes[0]]
        return args, {name: structure.decode(node, leaf) for name, node in self.nodes[1].items()}

    def reference_memory(self) -> list[int]:
        """Storage addresses of the last values given to the reference, to see results that are views of them."""
        return [memory.untyped_storage().data_ptr() for memory in self._memory.values()]

    def reference_changed(self) -> list[str]:
        """Names of inputs that the last values given to the reference no longer hold."""
        changed = [
            ", ".join(group.names)
            for key, group in self._groups.items()
            if not _equal(self._memory[key], group.pristine)
        ]
        if self._session.thrift:
            self._memory = {}
        return changed

    def changed_otherwise(self, tolerance: Tolerance) -> list[str]:
        """For inputs that the reference changes: sentences on those that forward left with other values than it."""
        found = []
        slots = dict(zip(self._groups, self._live_block.slots, strict=True)) if self._live_block is not None else {}
        for name, tensor in self._leaves:
            key = _storage(tensor)
            if not tensor.numel() or key not in self._memory or _equal(self._memory[key], self._groups[key].pristine):
                continue
            assert self._live_block is not None
            begin = _begin(tensor) - self._groups[key].low
            theirs = self._live_block.tensor(slots[key], begin, tensor.shape, tensor.stride(), tensor.dtype)
            flat = self._memory[key][begin : begin + span_bytes(tensor.shape, tensor.stride(), tensor.itemsize)]
            ours = _typed(flat, tensor.dtype).as_strided(tensor.shape, tensor.stride())
            compared = compare(ours, theirs, tolerance.atol, tolerance.rtol)
            if not compared.passed:
                found.append(f"ModelNew leaves other values in {name} than Model: {tell(name, compared, tolerance)}")
        return found

    def changed(self) -> list[str]:
        """Names of inputs that forward changed: whose slots no longer hold what was delivered."""
        if self._live_block is None:
            return []
        found = []
        for slot, group in zip(self._live_block.slots, self._groups.values(), strict=True):
            if not _equal(self._live_block.bytes(slot), group.pristine):
                found.append(", ".join(group.names))
        return found

    def overrun(self) -> list[str]:
        """Names of inputs before or behind which something was written."""
        if self._live_block is None:
            return []
        names = dict(
            zip(self._live_block.slots, (", ".join(group.names) for group in self._groups.values()), strict=True)
        )
        return [names.get(slot, "the inputs") for slot in self._live_block.broken_guards()]

    def poison_live(self) -> None:
        """Overwrites what forward saw, so that a result that is only a view of it changes."""
        if self._live_block is not None:
            for slot in self._live_block.slots:
                poison(self._live_block.bytes(slot), next(_seeds))

    def release(self) -> None:
        """Gives the memory back on both sides."""
        blocks = [block for block in (self._live_block, self._source_block) if block is not None]
        self._live_block = self._source_block = None
        self._groups.clear()
        self._session.forget(*blocks, inputs=[self.id])

    @property
    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """(name, tensor as get_inputs gave it) for every tensor argument."""
        return list(self._leaves)

    # ---- making ----------------------------------------------------------------------------------------------------

    def _collect(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        def walk(value: Any, name: str) -> None:
            if isinstance(value, torch.Tensor):
                _refuse_odd(value, name)
                self._leaves.append(
                    (name, value.detach().requires_grad_(value.requires_grad) if value.is_leaf else value.detach())
                )
            elif isinstance(value, (list, tuple)):
                for index, item in enumerate(value):
                    walk(item, f"{name}[{index}]")
            elif isinstance(value, Mapping):
                for key, item in value.items():
                    walk(item, f"{name}[{key!r}]")

        for index, value in enumerate(args):
            walk(value, f"input {index}")
        for word, value in kwargs.items():
            walk(value, word)
        bounds: dict[int, list[int]] = {}
        names: dict[int, list[str]] = {}
        for name, tensor in self._leaves:
            if tensor.numel() == 0:
                continue
            begin = _begin(tensor)
            end = begin + span_bytes(tensor.shape, tensor.stride(), tensor.itemsize)
            low, high = bounds.get(_storage(tensor), (begin, end))
            bounds[_storage(tensor)] = [min(low, begin), max(high, end)]
            names.setdefault(_storage(tensor), []).append(name)
        for _, tensor in self._leaves:
            key = _storage(tensor)
            if key in bounds and key not in self._groups:
                low, high = bounds[key]
                # Slots are laid out in units of the widest element, so a group begins where one could.
                low -= low % 16
                whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
                waits = self._live and self._session.thrift is Thrift.HOST
                home = torch.device("cpu") if waits else self._session.device
                self._groups[key] = _Group(low, high, whole[low:high].to(home), names[key])

    def _block(self, sizes: list[int], shift: int = 0) -> Block | None:
        if not sizes:
            return None
        block = Block(self._session.device, sizes, shift)
        announcement, slots = block.announcement()
        self._session.announce(announcement, slots, block.arena.fd)
        return block

    def _nodes(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[structure.Node], dict[str, structure.Node]]:
        slots = dict(zip(self._groups, self._live_block.slots, strict=True)) if self._live_block is not None else {}
        queue = iter(self._leaves)

        def leaf(_: Any) -> structure.Node:
            _, tensor = next(queue)
            node: structure.Node = {
                "k": "tensor",
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "size": list(tensor.shape),
                "stride": list(tensor.stride()),
                "grad": bool(tensor.requires_grad),
            }
            if tensor.numel():
                key = _storage(tensor)
                node.update(slot=slots[key], offset=_begin(tensor) - self._groups[key].low)
            return node

        positional = [_known(structure.encode(value, leaf), f"argument {index}") for index, value in enumerate(args)]
        named = {name: _known(structure.encode(value, leaf), name) for name, value in kwargs.items()}
        return positional, named

    def _renumber(self, old: Block | None, new: Block | None) -> None:
        if old is None or new is None:
            return
        numbers = dict(zip(old.slots, new.slots, strict=True))

        def renumbered(node: Any) -> Any:
            if isinstance(node, list):
                return [renumbered(item) for item in node]
            if isinstance(node, dict):
                made = {key: renumbered(item) for key, item in node.items()}
                if node.get("k") == "tensor" and "slot" in node:
                    made["slot"] = numbers[node["slot"]]
                return made
            return node

        self.nodes = (renumbered(self.nodes[0]), {name: renumbered(node) for name, node in self.nodes[1].items()})

    def _write(self) -> None:
        block = self._source_block or self._live_block
        if block is None:
            return
        for slot, group in zip(block.slots, self._groups.values(), strict=True):
            block.bytes(slot).copy_(group.pristine)


class Outputs:
    """Slots for the tensors of an expected result, poisoned before each call."""

    def __init__(self, session: Session, tree: structure.Node) -> None:
        self._session = session
        self.expected = tree
        self.poison_seed = next(_seeds) & 0x7FFFFFFF
        named = [(path, leaf) for path, leaf in structure.tensors(tree) if "odd" not in leaf]
        leaves = [leaf for _, leaf in named]
        self._layout = [
            (getattr(torch, leaf["dtype"]), list(leaf["size"]), contiguous(leaf["size"])) for leaf in leaves
        ]
        sizes = [span_bytes(size, stride, dtype.itemsize) for dtype, size, stride in self._layout]
        self._block = Block(session.device, sizes) if any(sizes) else None
        # The runner copies by path: a dict's keys need not come in the reference's order.
        self.paths = [path for path, _ in named]
        self.nodes: list[structure.Node] = []
        for index, (leaf, (_, size, stride)) in enumerate(zip(leaves, self._layout, strict=True)):
            slot = self._block.slots[index] if self._block is not None else 0
            self.nodes.append(
                {"k": "tensor", "dtype": leaf["dtype"], "size": size, "stride": stride, "slot": slot, "offset": 0}
            )
        if self._block is not None:
            announcement, slots = self._block.announcement()
            session.announce(announcement, slots, self._block.arena.fd)

    def tensors(self) -> list[torch.Tensor]:
        """What the runner left, contiguous, in the order of the tree."""
        made = []
        for index, (dtype, size, stride) in enumerate(self._layout):
            if 0 in size or self._block is None:
                made.append(torch.empty(size, dtype=dtype, device=self._session.device))
            else:
                made.append(self._block.tensor(self._block.slots[index], 0, size, stride, dtype))
        return made

    def poison(self) -> None:
        self.poison_seed = next(_seeds) & 0x7FFFFFFF
        for tensor in self.tensors():
            poison(tensor, self.poison_seed)

    def overrun(self) -> bool:
        """Whether something was written beside the slots."""
        return self._block is not None and bool(self._block.broken_guards())

    def release(self) -> None:
        if self._block is not None:
            self._session.forget(self._block)
            self._block = None


def contiguous(size: Sequence[int]) -> list[int]:
    """Strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for length in reversed(size):
        strides.append(step)
        step *= max(length, 1)
    return strides[::-1]


def structure_of(nodes: tuple[list[structure.Node], dict[str, structure.Node]]) -> Any:
    """The trees with everything but structure, dtypes, sizes, strides and offsets left out."""

    def bare(node: Any) -> Any:
        if isinstance(node, list):
            return [bare(item) for item in node]
        if node["k"] in ("tuple", "list", "dict"):
            return [node["k"], [structure.show(key) for key in node.get("keys", [])], bare(node["v"])]
        if node["k"] == "tensor":
            return [node["dtype"], node["size"], node["stride"], node.get("offset"), node["grad"]]
        return node["k"]

    return [bare(nodes[0]), {name: bare(node) for name, node in nodes[1].items()}]


def plain_of(nodes: tuple[list[structure.Node], dict[str, structure.Node]]) -> Any:
    """The values that are no tensors."""
    trees = [*nodes[0], *nodes[1].values()]
    return [[leaf.get("v") for _, leaf in structure.leaves(tree) if leaf["k"] != "tensor"] for tree in trees]


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two flat byte tensors agree; in pieces, as comparing takes as much memory again."""
    return all(
        torch.equal(part, other.to(part.device))
        for part, other in zip(one.split(_PIECE), two.split(_PIECE), strict=True)
    )


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _begin(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.itemsize


def _typed(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A flat uint8 tensor seen as `dtype`, wherever it begins."""
    start = flat.storage_offset()
    made = torch.empty(0, dtype=dtype, device=flat.device)
    return made.set_(flat.untyped_storage(), start // dtype.itemsize, (flat.numel() // dtype.itemsize,), (1,))


def _known(node: structure.Node, name: str) -> structure.Node:
    for path, leaf in structure.leaves(node, name):
        if leaf["k"] == "other":
            raise CannotTell(
                f"{path} is {structure.show(leaf)}, which cannot be handed to another process; give tensors, "
                "numbers, strings or lists of them"
            )
    return node


def _refuse_odd(tensor: torch.Tensor, name: str) -> None:
    if tensor.layout is not torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise CannotTell(
            f"{name} is a {type(tensor).__name__} with layout {tensor.layout}; only plain dense tensors can "
            "be handed to another process"
        )
