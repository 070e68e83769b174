"""Operators of ATen that only make or re-view memory: what a solution may use of at::_ops and of the dispatcher.

Each is a base name with the overloads it has; in C++ the overload is part of the name (`select` + `int` is
at::_ops::select_int), for the dispatcher it follows a dot (aten::select.int).
"""

from __future__ import annotations

_OVERLOADS = """
    _local_scalar_dense: ''
    _reshape_alias: ''
    _unsafe_view: ''
    adjoint: ''
    alias: ''
    arange: '' start start_step
    as_strided: ''
    as_strided_: ''
    broadcast_tensors: ''
    broadcast_to: ''
    chunk: ''
    clone: ''
    contiguous: ''
    data: ''
    detach: ''
    detach_: ''
    diagonal: ''
    empty: memory_format names
    empty_like: ''
    empty_permuted: ''
    empty_strided: ''
    expand: ''
    expand_as: ''
    eye: '' m
    fill_: Scalar
    flatten: using_ints
    from_file: ''
    full: ''
    full_like: ''
    imag: ''
    is_pinned: ''
    is_same_size: ''
    item: ''
    lift: ''
    lift_fresh: ''
    linspace: ''
    mH: ''
    mT: ''
    moveaxis: int intlist
    movedim: int intlist
    narrow: ''
    new_empty: ''
    new_empty_strided: ''
    new_full: ''
    new_ones: ''
    new_zeros: ''
    numpy_T: ''
    ones: ''
    ones_like: ''
    permute: ''
    real: ''
    requires_grad_: ''
    reshape: ''
    reshape_as: ''
    scalar_tensor: ''
    select: int
    set_: source_Storage source_Storage_storage_offset source_Tensor
    set_data: ''
    size: int
    slice: Tensor
    split: Tensor sizes
    split_with_sizes: ''
    squeeze: '' dim dims
    squeeze_: '' dim dims
    stride: int
    sym_numel: ''
    sym_size: int
    sym_storage_offset: ''
    sym_stride: int
    t: ''
    tensor_split: sections indices
    transpose: int
    unbind: int
    unflatten: int
    unfold: ''
    unsafe_chunk: ''
    unsafe_split: Tensor
    unsafe_split_with_sizes: ''
    unsqueeze: ''
    unsqueeze_: ''
    view: '' dtype
    view_as: ''
    view_as_complex: ''
    view_as_real: ''
    zero_: ''
    zeros: '' names
    zeros_like: ''
"""


def _read() -> dict[str, frozenset[str]]:
    table = {}
    for line in _OVERLOADS.split("\n"):
        name, _, overloads = line.strip().partition(":")
        if name:
            table[name] = frozenset(word.strip("'") for word in overloads.split())
    return table


_TABLE = _read()

# The names of at::_ops structs: `empty_memory_format`, `select_int`, `zero_`.
AT_OPS = frozenset(
    f"{name}_{overload}" if overload else name for name, overloads in _TABLE.items() for overload in overloads
)

# What the dispatcher calls them, without the overload.
ATEN = frozenset(_TABLE)


def dispatched_base(op: str) -> tuple[str, str]:
    """("aten", "select") of `aten::select.int`."""
    space, _, rest = op.partition("::")
    return (space, rest.split(".")[0]) if rest else ("", space.split(".")[0])
