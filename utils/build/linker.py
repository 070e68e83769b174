"""Which linker: a faster one than the compiler's own, where there is one that reports in a way the build understands.

GNU ld spends most of its time on the symbol tables of torch's libraries; gold and lld take half of it. Neither is taken
on trust: each links a small library with an undefined symbol first, which it must report but let pass, as Python's
symbols have to be. mold is no candidate: what is only warned of it binds to address zero, and the module crashes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from utils.build import flags
from utils.build.toolchain import HostCompiler

# The faster first.
CANDIDATES = ("gold", "lld")

_SOURCE = "void found_nowhere(int); void caller() { found_nowhere(1); }\n"


def candidates_present() -> list[Path]:
    """The candidates on PATH: while they stay the same, so does the answer of `fast_linker`."""
    found = (shutil.which(f"ld.{name}") for name in CANDIDATES)
    return [Path(path) for path in found if path]


def fast_linker(compiler: HostCompiler) -> str:
    """The name for -fuse-ld=; "" when the compiler's own linker it is, or one that its command names already."""
    if any(word.startswith("-fuse-ld") for word in compiler.command):
        return ""
    try:
        with tempfile.TemporaryDirectory(prefix="workbench-linker.") as folder:
            return next((name for name in CANDIDATES if _serves(compiler, name, Path(folder))), "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _serves(compiler: HostCompiler, name: str, folder: Path) -> bool:
    from utils.build.link import undefined_symbols  # asked for once, so not loaded by every build

    source, library = folder / "probe.cpp", folder / f"{name}.so"
    source.write_text(_SOURCE)
    command = [*compiler.command, "-fPIC", "-shared", str(source), "-o", str(library), *flags.linker_flags(name)]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, env=environment)
    said = [each.symbol for each in undefined_symbols(done.stdout + done.stderr)]
    return done.returncode == 0 and library.exists() and said == ["found_nowhere(int)"]
