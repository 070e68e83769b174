"""What the built module imports: the evidence that no spelling in the sources can hide."""

from __future__ import annotations

from utils.rules.allowed_ops import AT_OPS
from utils.rules.elf import SharedObject, nested_name
from utils.rules.libraries import LIBRARY, library_call, needed_violations
from utils.rules.python_values import is_compute
from utils.rules.rule import Violation, rule

OBJECT_COMPUTE = rule(
    "object-compute",
    "the built module imports only ATen's operators that create and view tensors",
    "undefined dynamic symbols of the module",
    "find the call in kernels/*.cpp (tensor methods and operators count) and replace it by a kernel of your own",
)

# Parts of ATen and torch below the operators that compute too.
_COMPUTE_SPACES = (
    ["at", "native"], ["at", "cuda", "blas"], ["at", "redispatch"], ["torch", "nn"], ["at", "cpu"], ["at", "linalg"],
    ["at", "compositeexplicitautograd"], ["at", "meta"],
)  # fmt: skip


def object_violations(built: SharedObject) -> list[Violation]:
    """Breaches shown by the symbols and the libraries of a built module."""
    found = []
    for symbol in built.undefined:
        why = library_call(symbol)
        if why:
            found.append(Violation(LIBRARY.id, why, built.path, None, symbol, LIBRARY.mend))
            continue
        parts = nested_name(symbol)
        name = _compute(parts)
        if name:
            said = "::".join(parts)
            found.append(
                Violation(
                    OBJECT_COMPUTE.id,
                    f"the built module calls {name}, compute of torch's",
                    built.path,
                    None,
                    said,
                    OBJECT_COMPUTE.mend,
                )
            )
    return found + needed_violations(built.path, built.needed)


def _compute(parts: list[str]) -> str | None:
    if parts[:2] == ["at", "_ops"] and len(parts) >= 4:
        return None if parts[2] in AT_OPS else parts[2]
    if parts[:2] in [space[:2] for space in _COMPUTE_SPACES if len(space) == 2] and is_compute(parts[-1]):
        return parts[-1]
    if parts[:3] == ["at", "cuda", "blas"]:
        return parts[-1]
    return None
