"""Makes the environment fit: `python3 -m utils.setup [--dev]` prints the interpreter that every command should use.

The interpreter that runs this is used as it is when it already has a CUDA build of PyTorch and the other packages of
requirements.txt. When only small packages are missing, they go into `.venv`, which then borrows the interpreter's
PyTorch instead of installing a second one. Without a fit PyTorch, `.venv` gets everything, pinned. The CUDA compiler
comes from the machine, or from the toolkit's own wheels where there is none (requirements-cuda.txt).

Only the standard library is imported here: this runs before anything is installed. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from utils.present.outcome import YES, CannotTell, run

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
OLDEST_TORCH = (2, 9)
OLDEST_PYTHON = (3, 10)


def requirements(file: str) -> list[str]:
    """The requirement lines of a file beside the README, without comments."""
    lines = (line.split("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def missing(lines: Sequence[str]) -> list[str]:
    """Those requirements of which this interpreter has no version at all.

    Another version than the pinned one is accepted: an active environment is its owner's choice.
    """
    absent = []
    for line in lines:
        name = re.split(r"[=<>;\[ ]", line, maxsplit=1)[0]
        try:
            version(name)
        except PackageNotFoundError:
            absent.append(line)
    return absent


def cuda_torch_here() -> str | None:
    """The version of this interpreter's PyTorch when it is a CUDA build that is new enough; torch is not imported."""
    for folder in sys.path:
        facts = Path(folder or ".") / "torch" / "version.py"
        if facts.is_file():
            text = facts.read_text(encoding="utf-8")
            number = re.search(r"__version__\s*=\s*'((\d+)\.(\d+)[^']*)'", text)
            cuda = re.search(r"^cuda\b.*=\s*'([\d.]+)'", text, re.MULTILINE)
            fit = number and cuda and (int(number[2]), int(number[3])) >= OLDEST_TORCH
            return number[1] if number and fit else None
    return None


def nvcc_here() -> bool:
    """Whether the machine has a CUDA compiler of its own, in the places the build looks."""
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    on_path = (Path(folder) / "nvcc" for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    return any(nvcc.is_file() for nvcc in (*(Path(place) / "bin" / "nvcc" for place in places if place), *on_path))


def environment(files: Sequence[str]) -> Path:
    """The interpreter to use, after installing what was missing. Raises CannotTell when that does not succeed."""
    wanted = [line for file in files for line in requirements(file)]
    compiler = [] if nvcc_here() else requirements("requirements-cuda.txt")
    stamp = VENV / f".ready-{hashlib.sha256(repr((wanted, compiler)).encode()).hexdigest()[:12]}"
    ours = VENV / "bin" / "python"
    if stamp.exists():
        return ours
    torch = cuda_torch_here()
    inside_ours = Path(sys.prefix).resolve() == VENV.resolve()
    if torch and not inside_ours:
        wanted = missing(wanted + compiler)
        if not wanted:
            return Path(sys.executable)
        _tell(f"PyTorch {torch} of {sys.executable} is used; missing packages go into {VENV.name}/")
    else:
        wanted += compiler
        _tell(
            f"no CUDA build of PyTorch >= {_dotted(OLDEST_TORCH)} here: "
            f"{VENV.name}/ gets one (about 3 GB, a few minutes)"
        )
    if not ours.exists():
        _step("make a virtual environment", [sys.executable, "-m", "venv", str(VENV)])
    if torch and not inside_ours:
        _borrow(ours)
    _step("install packages", [str(ours), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    for old in VENV.glob(".ready-*"):
        old.unlink()
    stamp.touch()
    return ours


def _borrow(ours: Path) -> None:
    """Lets `.venv` see this interpreter's packages behind its own."""
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    site = subprocess.run(
        [str(ours), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    (Path(site) / "borrowed.pth").write_text("\n".join(sorted(places)) + "\n", encoding="utf-8")


def _dotted(number: tuple[int, int]) -> str:
    return ".".join(map(str, number))


def _tell(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def _step(what: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise CannotTell(
            f"could not {what} (exit code {done.returncode}, its message stands above); "
            f"activate an environment that has a CUDA build of PyTorch >= {_dotted(OLDEST_TORCH)} and the packages of "
            "requirements.txt, or mend the network and try again"
        )


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m utils.setup", description="Makes the environment fit and prints the interpreter to use."
    )
    parser.add_argument("--dev", action="store_true", help="also what the tests and linters need")
    return parser.parse_args(argv)


def _files(dev: bool) -> Iterator[str]:
    yield "requirements.txt"
    if dev:
        yield "requirements-dev.txt"


def main(argv: Sequence[str]) -> int:
    """Prints the interpreter's path on stdout."""
    arguments = _arguments(argv)
    if sys.version_info < OLDEST_PYTHON:
        raise CannotTell(
            f"Python {sys.version.split()[0]} is too old: {_dotted(OLDEST_PYTHON)} or newer is needed; "
            "put a newer python3 first on PATH"
        )
    print(environment(list(_files(arguments.dev))))
    return YES


if __name__ == "__main__":
    run(main)
