"""The linker: a faster one only where it reports undefined symbols as the build reads them, and lets them pass."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from build_space import Space

from utils.build import linker
from utils.build.toolchain import HostCompiler

# Stands in for g++: "links" a library, saying what it is told to.
FAKE = """#!{python}
import sys
name = next((word for word in sys.argv if word.startswith("-fuse-ld=")), "")
if name in {known!r}:
    open(sys.argv[sys.argv.index("-o") + 1], "w").close()
    print({says!r}, file=sys.stderr)
else:
    sys.exit("collect2: fatal error: cannot find 'ld'")
"""
UNDERSTOOD = "x.o:x.cpp:function caller(): warning: undefined reference to 'found_nowhere(int)'"


def compiler(folder: Path, known: list[str], says: str) -> HostCompiler:
    path = folder / "fake-g++"
    path.write_text(FAKE.format(python=sys.executable, known=known, says=says))
    path.chmod(0o755)
    return HostCompiler((str(path),), path)


def test_the_first_that_serves(tmp_path: Path) -> None:
    assert linker.fast_linker(compiler(tmp_path, ["-fuse-ld=gold", "-fuse-ld=lld"], UNDERSTOOD)) == "gold"
    assert linker.fast_linker(compiler(tmp_path, ["-fuse-ld=lld"], UNDERSTOOD)) == "lld"
    assert linker.fast_linker(compiler(tmp_path, [], UNDERSTOOD)) == ""


@pytest.mark.parametrize("says", ["", "something is undefined", UNDERSTOOD.replace("found_nowhere", "another")])
def test_one_that_is_not_understood_is_not_taken(tmp_path: Path, says: str) -> None:
    assert linker.fast_linker(compiler(tmp_path, ["-fuse-ld=gold", "-fuse-ld=lld"], says)) == ""


def test_a_linker_that_the_user_names_stays(tmp_path: Path) -> None:
    named = compiler(tmp_path, ["-fuse-ld=gold"], UNDERSTOOD)
    assert linker.fast_linker(HostCompiler((*named.command, "-fuse-ld=bfd"), named.path)) == ""


def test_a_compiler_that_does_not_run_has_none(tmp_path: Path) -> None:
    assert linker.fast_linker(HostCompiler((str(tmp_path / "nothing"),), tmp_path)) == ""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("name", linker.CANDIDATES)
def test_the_real_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is on this machine passes the trial: its words are still those that link.py reads."""
    if shutil.which(f"ld.{name}") is None:
        pytest.skip(f"no ld.{name}")
    monkeypatch.setattr(linker, "CANDIDATES", (name,))
    assert linker.fast_linker(HostCompiler(("g++",), Path("g++"))) == name


def test_the_module_is_linked_with_it_and_without_it(space: Space) -> None:
    """The choice is part of the plan: with the compiler's own linker instead, the module is linked again, and works."""
    fast = "-fuse-ld=" in space.read("build/build.ninja")
    assert fast == bool(linker.fast_linker(HostCompiler(("g++",), Path("g++"))))
    outcome = space.compile(CXX="g++ -fuse-ld=bfd")
    assert outcome.code == 0, outcome.text
    command = next(
        line for line in space.read("build/compile.log").splitlines() if line.startswith("$ g++") and "-shared" in line
    )
    assert command.count("-fuse-ld=") == 1
    assert "-fuse-ld=bfd" in command
    done = space.python("import torch, cuda_extension as c; print(sorted(c.__kernels__))")
    assert done.out.strip() == "['my_kernel', 'scale']", done.text
