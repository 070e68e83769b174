"""halves.py: what nvcc makes of a file, in less time; and nvcc itself wherever anything is not as expected."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.build.halves import steps
from utils.build.ninja_file import headers_of
from utils.build.plan import HALVES_SCRIPT
from utils.build.toolchain import find_nvcc

SOURCE = """#include <cstdio>
#if defined(__CUDA_ARCH__)
#include "device_only.h"
#else
#include "host_only.h"
#endif
namespace {
__global__ void kernel(float* x) { x[threadIdx.x] *= 2.0f; }
}
extern "C" void launcher(float* x, cudaStream_t stream) {
    kernel<<<1, 32, 0, stream>>>(x);
    std::printf("launched\\n");
}
"""
FLAGS = ["-ccbin", "g++", "-O3", "-std=c++17", "-lineinfo", "-Xptxas", "-v", "-gencode=arch=compute_90a,code=sm_90a"]
SECTIONS = (".text", ".nv_fatbin", ".nvFatBinSegment", ".rodata", ".rodata.str1.1", ".eh_frame")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a folder with ä"
    made.mkdir()
    (made / "temporary").mkdir()
    for name in ("device_only.h", "host_only.h"):
        (made / name).write_text("")
    return made


def compiled(
    folder: Path, source: str, *more: str, halves: bool, **environment: str
) -> subprocess.CompletedProcess[str]:
    """x.cu compiled to halves.o or nvcc.o, with its dependencies in the same name and .d."""
    (folder / "x.cu").write_text(source)
    name = "halves" if halves else "nvcc"
    nvcc = [str(find_nvcc(None).path), *FLAGS, *more, "-MMD", "-MF", f"{name}.d", "-c", "x.cu", "-o", f"{name}.o"]
    return subprocess.run(
        [sys.executable, "-S", "-E", str(HALVES_SCRIPT), *nvcc] if halves else nvcc,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


def section(object_file: Path, name: str) -> bytes:
    target = object_file.with_suffix(".section")
    target.unlink(missing_ok=True)
    command = ["objcopy", "-O", "binary", "-j", name, str(object_file), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target.read_bytes() if target.exists() else b""


def symbols(object_file: Path) -> list[str]:
    said = subprocess.run(["nm", str(object_file)], check=True, capture_output=True, text=True).stdout
    return [line for line in said.splitlines() if "tmpxft" not in line]


def dependencies(depfile: Path) -> set[str]:
    text = depfile.read_text().replace("\\ ", "\0").replace("\\\n", " ").partition(":")[2]
    return {os.path.normpath(word.replace("\0", " ")) for word in text.split() if word != ":"}


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What was printed, without the times that ptxas tells."""
    return [line for line in done.stdout.splitlines() if "Compile time" not in line]


@pytest.mark.parametrize("more", [(), ("--expt-extended-lambda", "--expt-relaxed-constexpr")])
def test_the_object_and_all_else_is_what_nvcc_makes(folder: Path, more: tuple[str, ...]) -> None:
    ours, theirs = compiled(folder, SOURCE, *more, halves=True), compiled(folder, SOURCE, *more, halves=False)
    assert ours.returncode == theirs.returncode == 0, ours.stdout + theirs.stdout
    assert said(ours) == said(theirs) and any("Used" in line for line in said(ours))
    for name in SECTIONS:
        assert section(folder / "halves.o", name) == section(folder / "nvcc.o", name), name
    assert section(folder / "halves.o", ".nv_fatbin") and symbols(folder / "halves.o") == symbols(folder / "nvcc.o")
    found = dependencies(folder / "halves.d")
    assert found >= dependencies(folder / "nvcc.d") and {"x.cu", "device_only.h", "host_only.h"} <= found
    assert (folder / "halves.d").read_text().startswith("halves.o:")
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('#include "device_only.h"', '#include "missing.h"'),
        ('#include "host_only.h"', '#include "missing.h"'),
        ("x[threadIdx.x] *= 2.0f", "y[threadIdx.x] *= 2.0f"),
        ("#include <cstdio>", "#include <missing>"),
        ("x[threadIdx.x] *= 2.0f;", "__shared__ float s[100000]; s[threadIdx.x] = *x; __syncthreads(); *x = s[7];"),
        ("extern", "int unused() { int nothing; return 0; }\nextern"),
        ("float* x)", 'float* x) { asm("nothing %0;" :: "f"(*x)); }\n__global__ void other(float* x)'),
    ],
)
def test_errors_and_warnings_are_nvccs(folder: Path, old: str, new: str) -> None:
    source = SOURCE.replace(old, new, 1)
    assert source != SOURCE
    ours, theirs = compiled(folder, source, halves=True), compiled(folder, source, halves=False)
    assert ours.returncode == theirs.returncode
    scratch = re.compile(r"\S*tmpxft_\S*")
    assert [scratch.sub("", line) for line in said(ours)] == [scratch.sub("", line) for line in said(theirs)]
    assert ours.returncode or "warning" in ours.stdout
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("more", "environment"),
    [(("-gencode=arch=compute_80,code=sm_80",), {}), ((), {"MAX_JOBS": "1"})],
)
def test_what_is_not_for_halves_is_left_to_nvcc(
    folder: Path, more: tuple[str, ...], environment: dict[str, str]
) -> None:
    done = compiled(folder, SOURCE, *more, halves=True, **environment)
    assert done.returncode == 0, done.stdout
    assert (folder / "halves.o").stat().st_size and "x.cu" in dependencies(folder / "halves.d")


def test_an_object_with_a_space_in_its_name_has_the_dependencies_that_ninja_reads(folder: Path) -> None:
    (folder / "x.cu").write_text(SOURCE)
    nvcc = [str(find_nvcc(None).path), *FLAGS, "-MMD", "-MF", "its own.d", "-c", "x.cu", "-o", "an object.o"]
    subprocess.run(
        [sys.executable, "-S", "-E", str(HALVES_SCRIPT), *nvcc],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert (folder / "an object.o").stat().st_size
    text = (folder / "its own.d").read_text()
    assert text.startswith("an\\ object.o:") and {"x.cu", "device_only.h", "host_only.h"} <= set(headers_of(text))


def dry_run(folder: Path) -> str:
    (folder / "x.cu").write_text(SOURCE)
    command = [str(find_nvcc(None).path), *FLAGS, "--dryrun", "-c", "x.cu", "-o", "x.o"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr


def test_steps_that_are_not_as_expected_are_none_of_ours(folder: Path) -> None:
    text = dry_run(folder)
    found = steps(text)
    assert found is not None and len(found[0]) == 7 and found[1]["CICC_PATH"]
    commands = [line for line in text.splitlines() if re.match(r"#\$ [^=]* ", line) and not line.startswith("#$ rm ")]
    assert len(commands) >= 7
    for line in commands:
        if "Filter Dependencies" not in line:
            assert steps(text.replace(line + "\n", "")) is None, f"without {line[:40]}"
        assert steps(text + line + "\n") is None or "Filter" in line, f"twice {line[:40]}"
    assert steps(text + "#$ something else\n") is None
    assert steps("nvcc warning : something\n" + text) is None
    assert steps(text.replace(".module_id", ".other_id", 1)) is None
    assert steps("") is None


def test_an_nvcc_of_another_kind_is_called_as_it_is(tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n[ "$1" = -c ] && echo compiled && exit 3\n')
    nvcc.chmod(0o755)
    command = [sys.executable, "-S", "-E", str(HALVES_SCRIPT), str(nvcc), "-c", "x.cu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "compiled\n")
    assert (tmp_path / "calls").read_text().splitlines() == ["-c x.cu --dryrun", "-c x.cu"]


def test_nothing_is_left_of_one_that_is_ended(folder: Path) -> None:
    slow = (
        "template <int N> __global__ void k(float* x) { for (int i = 0; i < N; ++i) x[i] += x[i * N]; }\n"
        + "\n".join(f"template __global__ void k<{n}>(float*);" for n in range(1, 400))
    )
    (folder / "x.cu").write_text(slow)
    nvcc = [str(find_nvcc(None).path), *FLAGS, "-c", "x.cu", "-o", "x.o"]
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", str(HALVES_SCRIPT), *nvcc],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 30
    while not list((folder / "temporary").glob("*/*.ptx")) and process.poll() is None and time.monotonic() < end:
        if list((folder / "temporary").glob("*/*.cpp1.ii")):
            break
        time.sleep(0.02)
    process.terminate()
    assert process.wait(20) != 0
    time.sleep(0.3)
    assert list((folder / "temporary").iterdir()) == []
    assert (
        not shutil.which("pgrep")
        or not subprocess.run(["pgrep", "-f", str(folder / "temporary")], capture_output=True, text=True).stdout
    )
