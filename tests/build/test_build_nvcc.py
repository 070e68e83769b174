"""nvcc.sh: without the flag for lambdas on the device where a file does without, with it where it does not."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from build_space import SCALE_CU, Space

from utils.build.plan import NVCC_SCRIPT

FLAG = "--expt-extended-lambda"
# Stands in for nvcc: notes how it is called, and answers as it is told to for a call without the flag and with it.
FAKE = """#!{python}
import sys
from ast import literal_eval
with open({calls!r}, "a") as file:
    file.write(repr(sys.argv[1:]) + "\\n")
said, status = {answers!r}["{flag}" in sys.argv]
print(said)
sys.exit(status)
"""
FINE = ("ptxas info    : Used 10 registers", 0)
FAILS = ('kernels/x.cu(2): error: namespace "std" has no member "function"', 2)


class Nvcc:
    """An nvcc that answers `without` the flag and `with_flag`."""

    def __init__(self, folder: Path, without: tuple[str, int], with_flag: tuple[str, int] = FINE) -> None:
        self.folder = folder
        self.path = folder / "nvcc"
        self.calls_file = folder / "calls"
        answers = {False: without, True: with_flag}
        text = FAKE.format(python=sys.executable, calls=str(self.calls_file), answers=answers, flag=FLAG)
        self.path.write_text(text)
        self.path.chmod(0o755)

    def run(self, *arguments: str) -> tuple[int, str]:
        self.calls_file.unlink(missing_ok=True)
        command = ["sh", str(NVCC_SCRIPT), str(self.folder / "x.o"), str(self.path), FLAG, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout.strip()

    @property
    def calls(self) -> list[list[str]]:
        return [literal_eval(line) for line in self.calls_file.read_text().splitlines()]


def test_a_plain_file_is_compiled_once_without_the_flag(tmp_path: Path) -> None:
    nvcc = Nvcc(tmp_path, FINE)
    assert nvcc.run("-c", "a file.cu", "", "-D'x'") == (0, FINE[0])
    assert nvcc.calls == [["-c", "a file.cu", "", "-D'x'"]], "every word arrives as it was"
    assert not (tmp_path / "x.o.lambda").exists()


def test_a_file_that_needs_the_flag_gets_it_and_keeps_it(tmp_path: Path) -> None:
    nvcc = Nvcc(tmp_path, FAILS)
    assert nvcc.run("-c", "x.cu") == (0, FINE[0]), "nothing of the first attempt is shown"
    assert nvcc.calls == [["-c", "x.cu"], ["-c", "x.cu", FLAG]]
    assert nvcc.run("-c", "x.cu") == (0, FINE[0])
    assert nvcc.calls == [["-c", "x.cu", FLAG]], "at once, the second time"


def test_a_file_that_fails_either_way(tmp_path: Path) -> None:
    other = ('kernels/x.cu(3): error: identifier "y" is undefined', 2)
    nvcc = Nvcc(tmp_path, FAILS, other)
    assert nvcc.run("-c", "x.cu") == (2, other[0])
    assert not (tmp_path / "x.o.lambda").exists()


@pytest.mark.parametrize(
    "answer",
    [
        ("ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x27100 bytes, 0xc000 max)", 255),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_99'", 1),
        ("Killed", 137),
        ("kernels/x.cu:1:10: fatal error: missing.h: No such file or directory", 1),
        ("", 1),
    ],
)
def test_what_the_flag_has_no_part_in_is_not_tried_again(tmp_path: Path, answer: tuple[str, int]) -> None:
    nvcc = Nvcc(tmp_path, answer)
    assert nvcc.run("-c", "x.cu") == (answer[1], answer[0])
    assert len(nvcc.calls) == 1


def test_lambdas_on_the_device_and_what_functional_brings(space: Space, tmp_path: Path) -> None:
    """In earnest: both compile, though no flag and no header of the file asks for them."""
    space.write(
        "kernels/scale.cu",
        SCALE_CU
        + """
template <class Function> __global__ void each(Function f) { f(threadIdx.x); }
void lambda(float* x) { each<<<1, 32>>>([=] __device__(int i) { x[i] = 1.0f; }); }
int transitive() { std::function<int()> f = [] { return std::vector<int>{1}.front(); }; return f(); }
""",
    )
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert (space.root / "build/obj/kernels/scale.cu.o.lambda").exists()
    assert not (space.root / "build/obj/kernels/my_kernel.cu.o.lambda").exists()
    assert space.compile().out.startswith("up to date")
