"""Building the library: cached by content, safe when two begin at once, and clear about what is missing."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

from utils.native import library
from utils.present.outcome import CannotTell
from utils.problem.workspace import ROOT


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_two_builders_at_once(cache):
    command = [sys.executable, "-m", "utils.native.library"]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [builder.communicate(timeout=300)[0].strip() for builder in both]
    assert said[0] == said[1] and both[0].returncode == both[1].returncode == 0
    assert ctypes.CDLL(said[0]).native_has_cuda() in (0, 1)
    # one library, one lock, and nothing half-built beside them
    assert len(list((cache / "kernel-workbench/native").iterdir())) == 2
    before = os.stat(said[0]).st_mtime_ns
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert os.stat(said[0]).st_mtime_ns == before


def test_the_digest_follows_sources_and_architectures(tmp_path, monkeypatch):
    first = library._plan([])[0]
    assert library._plan([])[0] == first
    copy = tmp_path / "src"
    shutil.copytree(library.SOURCES, copy)
    monkeypatch.setattr(library, "SOURCES", copy)
    assert library._plan([])[0] == first  # where the sources lie is no matter
    with open(copy / "tally.h", "a") as header:
        header.write("// changed\n")
    assert library._plan([])[0] != first


def test_a_compiler_that_fails_is_quoted(cache, tmp_path, monkeypatch):
    copy = tmp_path / "src"
    copy.mkdir()
    (copy / "broken.cpp").write_text("int f() { return undeclared_name; }\n")
    monkeypatch.setattr(library, "SOURCES", copy)
    with pytest.raises(CannotTell, match="undeclared_name"):
        library.build([])
    assert not list((cache / "kernel-workbench/native").glob("*/*.so"))


def test_no_compiler(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(CannotTell, match="no-such-compiler"):
        library.build([])


def test_the_override(tmp_path, monkeypatch):
    monkeypatch.setenv(library.OVERRIDE, str(tmp_path / "missing.so"))
    with pytest.raises(CannotTell, match=r"missing\.so"):
        library.path()
    (tmp_path / "missing.so").write_text("not a library")
    assert library.path() == tmp_path / "missing.so"
    with pytest.raises(CannotTell, match="does not load"):
        library.load(tmp_path / "missing.so")


def test_errors_carry_the_librarys_words():
    if library.has_cuda():
        with pytest.raises(library.NativeError, match="no CUDA device 9999"):
            library.call("native_synchronize_device", 9999)
    else:
        with pytest.raises(CannotTell, match="without CUDA"):
            library.call("native_synchronize_device", 0)


@pytest.mark.slow
def test_the_cuda_half_builds_and_loads_without_a_driver(cache):
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    place = library.build(["9.0"])
    program = (
        "import torch; from utils.native import library; from utils.native.compare import compare\n"
        "assert library.has_cuda() and compare(torch.ones(3), torch.ones(3), 0, 0).passed"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        check=True,
        env={**os.environ, library.OVERRIDE: str(place)},
        timeout=120,
    )
