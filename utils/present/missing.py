"""Packages that a command needs and this Python does not have: one sentence instead of a traceback.

Only the standard library is imported here, as this is for when the rest is not there.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

# What requirements.txt installs, by the names they are imported under.
PACKAGES = (
    "torch", "numpy", "ninja", "rich", "tree_sitter", "tree_sitter_cuda", "tree_sitter_cpp", "jinja2", "pynvml",
)  # fmt: skip
_CANNOT_TELL = 2


def sentence(error: BaseException) -> str | None:
    """What to say of an import that failed for want of such a package; None for any other error."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name not in PACKAGES:
        return None
    return (
        f"the package {name} is not installed for {sys.executable}; `python3 -m utils.setup` installs what is needed "
        "and prints the Python to use (with `.venv`: source .venv/bin/activate)"
    )


def watch() -> None:
    """From here on an import that fails so at the top of a command ends it with the sentence and exit code 2."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        said = sentence(error)
        if said is None:
            return shown(kind, error, trace)
        print(f"error: {said}", file=sys.stderr, flush=True)
        # The interpreter would end with 1, which says no.
        os._exit(_CANNOT_TELL)

    sys.excepthook = hook
