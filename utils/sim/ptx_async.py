"""Inline PTX of mbarriers and bulk copies, as calls of include/sim/mbarrier.h (see utils/sim/ptx.py)."""

from __future__ import annotations

from utils.sim.ptx_operands import NotKnown, Translation, state_space

_HERE = "__FILE__, __LINE__"


def _own(s: Translation, mods: list[str], text: str) -> str:
    """The address of an mbarrier of the block's own."""
    state = state_space(mods)
    if state not in ("shared", "generic"):
        raise NotKnown("an mbarrier of another block")
    return s.address(text, state)


def mbarrier(s: Translation, mods: list[str], a: list[str]) -> str:
    operation = mods[0]
    relaxed = "relaxed" in mods
    if operation == "init":
        return f"::sim::mbarrier_init({_own(s, mods, a[0])}, {s.read(a[1], 'u32')}, {_HERE});"
    if operation == "inval":
        return f"::sim::mbarrier_invalidate({_own(s, mods, a[0])}, {_HERE});"
    if operation in ("expect_tx", "complete_tx"):
        name = operation.removesuffix("_tx")
        return f"::sim::mbarrier_{name}({_own(s, mods, a[0])}, {s.read(a[1], 'u32')}, {_HERE});"
    if operation in ("arrive", "arrive_drop"):
        # Without a state the address comes first.
        state, *rest = ["_", *a] if a[0].startswith("[") else a
        number = s.read(rest[1], "u32") if len(rest) > 1 else ""
        count, size = ("1", number) if "expect_tx" in mods else (number or "1", "0")
        drop, release = ("true" if flag else "false" for flag in (operation == "arrive_drop", not relaxed))
        return s.write(
            state, f"::sim::mbarrier_arrive({_own(s, mods, rest[0])}, {count}, {size}, {drop}, {release}, {_HERE})"
        )
    if operation in ("try_wait", "test_wait"):
        # A fourth operand says how long to wait at most: until nothing else moves, here.
        parity = "parity" in mods
        name = "mbarrier_wait_parity" if parity else "mbarrier_wait"
        wanted = s.read(a[2], "u32" if parity else "u64")
        acquire = "false" if relaxed else "true"
        predicate, _, other = a[0].partition("|")
        if other:
            raise NotKnown("")
        return s.write(predicate, f"::sim::{name}({_own(s, mods, a[1])}, {wanted}, {acquire}, {_HERE})")
    raise NotKnown("")


def arrive_after_copies(s: Translation, mods: list[str], a: list[str]) -> str:
    """cp.async.mbarrier.arrive"""
    counted = "true" if "noinc" in mods else "false"
    return f"::sim::mbarrier_arrive_after_copies({_own(s, mods, a[0])}, {counted}, {_HERE});"


def bulk(s: Translation, mods: list[str], a: list[str]) -> str:
    """cp.async.bulk; `mods` begin with async."""
    if "tensor" in mods:
        raise NotKnown("tensor copies")
    if any("multicast" in mod or "cp_mask" in mod for mod in mods):
        raise NotKnown("multicast" if "multicast::cluster" in mods else "")
    if "commit_group" in mods:
        return "::sim::bulk_commit();"
    if "wait_group" in mods:
        return f"::sim::bulk_wait({s.read(a[0], 'u32')}, {'true' if 'read' in mods else 'false'});"
    if "prefetch" in mods:
        return f"::sim::bulk_prefetch({s.address(a[0], 'global')}, {s.read(a[1], 'u32')}, {_HERE});"
    if "mbarrier::complete_tx::bytes" in mods and mods[2].startswith("shared::") and mods[3] == "global":
        target, barrier = (s.address(each, "cluster" if "cluster" in mods[2] else "shared") for each in (a[0], a[3]))
        places = f"{target}, {s.address(a[1], 'global')}, {s.read(a[2], 'u32')}, {barrier}"
        return f"::sim::bulk_load({places}, {_HERE});"
    if "bulk_group" in mods and mods[2] == "global":
        places = f"{s.address(a[0], 'global')}, {s.address(a[1], 'shared')}, {s.read(a[2], 'u32')}"
        return f"::sim::bulk_store({places}, {_HERE});"
    raise NotKnown("")
