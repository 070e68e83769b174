"""The build: sources, toolchain, ninja file, errors explained. `build(workspace)` is the whole of it.

Nothing here imports torch (that alone costs seconds): its version, headers and libraries are found as files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from utils.build.builder import BuildResult, build

__all__ = ["BuildResult", "build"]


def __getattr__(name: str) -> Any:
    # Late, so that light parts (digest, sources) can be imported without the rest.
    if name in __all__:
        from utils.build import builder

        return getattr(builder, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
