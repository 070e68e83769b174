"""The precompiled header: made whole or not at all, by one process at a time, kept few, used only when there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build_space import ROOT, Space

from utils.build import pch
from utils.build.pch import PrecompiledHeader

# Stands in for g++: writes its own process into the file named after -o, slowly.
FAKE = """#!{python}
import os, sys, time
target = sys.argv[sys.argv.index("-o") + 1]
with open(target, "w") as file:
    file.write("half")
    file.flush()
    time.sleep({delay})
    file.write(str(os.getpid()))
sys.exit({status})
"""


def compiler(folder: Path, delay: float = 0.0, status: int = 0) -> str:
    path = folder / "fake-g++"
    path.write_text(FAKE.format(python=sys.executable, delay=delay, status=status))
    path.chmod(0o755)
    return str(path)


def header_folder(tmp_path: Path, name: str = "key") -> Path:
    folder = tmp_path / "pch" / name
    folder.mkdir(parents=True)
    return folder


def test_made_once(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    command = [compiler(tmp_path)]
    assert pch.make("types", folder, command)
    first = (folder / "torch_headers.h.gch").read_text()
    assert pch.make("types", folder, command)
    assert (folder / "torch_headers.h.gch").read_text() == first
    assert "#include <torch/types.h>" in (folder / "torch_headers.h").read_text()
    assert not list(folder.glob("*.part"))


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    assert not pch.make("types", folder, [compiler(tmp_path, status=1)])
    assert not (folder / "torch_headers.h.gch").exists()
    assert not list(folder.glob("*.part"))


def test_a_maker_that_dies_leaves_no_header_and_its_rest_is_removed(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    slow = compiler(tmp_path, delay=60)
    run = subprocess.Popen(
        [sys.executable, "-m", "utils.build.pch", "types", str(folder), f'["{slow}"]'], cwd=ROOT, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not list(folder.glob("*.part")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(folder.glob("*.part"))
    assert not (folder / "torch_headers.h.gch").exists(), "half a header must not be seen"
    os.killpg(run.pid, 9)
    run.wait(timeout=30)
    assert pch.make("types", folder, [compiler(tmp_path)])
    assert not list(folder.glob("*.part"))


def test_makers_at_once_make_one(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    slow = compiler(tmp_path, delay=0.3)
    runs = [
        subprocess.Popen([sys.executable, "-m", "utils.build.pch", "types", str(folder), f'["{slow}"]'], cwd=ROOT)
        for _ in range(3)
    ]
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0]
    assert (folder / "torch_headers.h.gch").read_text().startswith("half")


def test_only_the_last_used_are_kept(tmp_path: Path) -> None:
    for age, name in enumerate(("newest", "second", "third", "fourth", "oldest")):
        folder = header_folder(tmp_path, name)
        (folder / "torch_headers.h.gch").write_text("x")
        when = time.time() - 100 * (age + 1)
        os.utime(folder, (when, when))
    assert pch.make("types", header_folder(tmp_path, "mine"), [compiler(tmp_path)])
    assert sorted(path.name for path in (tmp_path / "pch").iterdir()) == ["mine", "newest", "second", "third"]


@pytest.mark.parametrize("binding", sorted((ROOT / "kernels").glob("*_binding.cpp")), ids=lambda path: path.stem)
def test_the_default_bindings_take_the_light_set(binding: Path) -> None:
    assert pch.fitting(binding.read_text()) == "tensor"


def making(folder: Path, since: float) -> PrecompiledHeader:
    """A header that has been in the making for `since` seconds, in `folder`."""
    header = PrecompiledHeader.__new__(PrecompiledHeader)
    header.kind, header.folder = "types", folder
    (folder / "torch_headers.h").touch()
    os.utime(folder / "torch_headers.h", (time.time() - since,) * 2)
    return header


def maker(folder: Path, delay: float) -> subprocess.Popen[bytes]:
    """A process that holds the lock for `delay` seconds, then leaves the header; it holds the lock on return."""
    program = (
        "import fcntl, pathlib, sys, time\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "lock = open(folder / 'lock', 'a')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print(flush=True)\n"
        "time.sleep(float(sys.argv[2]))\n"
        "(folder / 'torch_headers.h.gch').touch()\n"
    )
    run = subprocess.Popen([sys.executable, "-c", program, str(folder), str(delay)], stdout=subprocess.PIPE)
    assert run.stdout is not None
    run.stdout.readline()
    return run


def test_one_nearly_done_is_waited_for(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    run = maker(folder, 0.5)
    assert making(folder, since=60).wait() == folder / "torch_headers.h"
    run.communicate(timeout=30)


def test_one_just_begun_is_not_waited_for_and_none_is_for_long(tmp_path: Path) -> None:
    folder = header_folder(tmp_path)
    run = maker(folder, 60)
    try:
        for since, most in ((0, 0.5), (1, 1.5), (3600, pch._PATIENCE + 1)):
            began = time.monotonic()
            assert making(folder, since).wait() is None
            assert time.monotonic() - began < most
    finally:
        run.kill()
        run.communicate(timeout=30)


def test_one_that_nobody_makes_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    assert making(header_folder(tmp_path), since=60).wait() is None
    assert time.monotonic() - began < 1


@pytest.mark.slow
def test_a_binding_built_with_it_is_the_same(space: Space, tmp_path: Path) -> None:
    """Made in earnest (20 s, 0.5 GB), then taken by the binding that fits, and not by the one that does not."""
    cache = {"KERNEL_WORKBENCH_PCH": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "utils.build.pch"], cwd=ROOT, env={**space.environment, **cache}, timeout=500
    )
    assert done.returncode == 0
    made = list((tmp_path / "cache/kernel-workbench/pch").glob("*/torch_headers.h"))
    assert len(made) == len(pch.SETS)
    (header,) = (each for each in made if "torch/types.h" in each.read_text())
    assert Path(f"{header}.gch").stat().st_size > 1 << 20
    assert space.compile(**cache).out.startswith("up to date"), "its coming alone is no reason to compile"
    # Unusable when it is taken, so that taking it shows.
    header.write_text("#error taken\n")
    Path(f"{header}.gch").write_bytes(b"not a header")
    space.replace("kernels/scale_binding.cpp", "return true;", "return  true;")
    assert space.compile(**cache).code == 0
    space.replace("kernels/my_kernel_binding.cpp", "auto output", "auto  output")
    outcome = space.compile(**cache)
    assert outcome.code == 1
    assert "#error taken" in outcome.out
    Path(f"{header}.gch").unlink()
    header.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "utils.build.pch"], cwd=ROOT, env={**space.environment, **cache}, timeout=500
    )
    outcome = space.compile(**cache)
    assert outcome.code == 0, outcome.text
    assert (
        space.python("import torch, cuda_extension as c; print(list(c.__kernels__))").out.strip()
        == "['my_kernel', 'scale']"
    )
    Path(f"{header}.gch").unlink()
