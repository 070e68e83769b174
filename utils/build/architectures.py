"""GPU architectures: every spelling of TORCH_CUDA_ARCH_LIST people use, and what nvcc is told for it.

9.0 is compiled as sm_90a: wgmma, TMA's multicast and setmaxnreg exist only there, and 9.0 is the only member of its
family, so nothing is lost. Other entries are taken as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from utils.present.outcome import CannotTell

VARIABLE = "TORCH_CUDA_ARCH_LIST"
DEFAULT = (9, 0)

# Marketing names, as torch's own CMake files give them.
NAMES = {
    "volta": "7.0",
    "volta+tegra": "7.2",
    "turing": "7.5",
    "ampere": "8.0;8.6",
    "ampere+tegra": "8.7",
    "ada": "8.9",
    "hopper": "9.0",
    "blackwell": "10.0;10.3;12.0",
    "blackwell+tegra": "11.0",
    "maxwell": "5.0;5.2",
    "pascal": "6.0;6.1",
    "kepler": "3.5;3.7",
}
# Data-centre and desktop parts in wide use; `common` keeps those of them that nvcc supports.
COMMON = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")

_ENTRY = re.compile(
    r"(?:(?P<code>sm|compute)_?)?(?P<major>\d{1,2})\.?(?P<minor>\d)(?P<suffix>[af]?)(?P<ptx>\+ptx)?", re.I
)


@dataclass(frozen=True, order=True)
class Architecture:
    """One architecture to compile for; `suffix` is "a" or "f" for the feature sets of one chip or family."""

    major: int
    minor: int
    suffix: str = ""
    ptx: bool = False

    @property
    def number(self) -> str:
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def sm(self) -> str:
        return f"sm_{self.number}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}{'+PTX' if self.ptx else ''}"

    def gencode(self) -> list[str]:
        """The flags of nvcc: machine code, and PTX where asked for, whose suffix would bar later GPUs."""
        flags = [f"-gencode=arch=compute_{self.number},code=sm_{self.number}"]
        if self.ptx:
            flags.append(f"-gencode=arch=compute_{self.major}{self.minor},code=compute_{self.major}{self.minor}")
        return flags

    def runs_on(self, device: tuple[int, int]) -> bool:
        """Whether code for this architecture runs on a GPU of compute capability `device`."""
        own = (self.major, self.minor)
        if self.ptx and device >= own:
            return True
        if self.suffix == "a":
            return device == own
        return device[0] == self.major and device[1] >= self.minor


def parse_arch_list(
    text: str | None, visible: Sequence[tuple[int, int]] = (), supported: Iterable[str] | None = None
) -> list[Architecture]:
    """The architectures `text` (the value of TORCH_CUDA_ARCH_LIST) names, sorted, each once.

    `visible` holds the compute capabilities of the GPUs present, for `native` and for an unset or empty text.
    `supported` holds the names nvcc lists ("sm_90", ...), for `All` and `Common`.
    Raises CannotTell naming the bad entry.
    """
    entries = [entry for entry in re.split(r"[;,\s]+", text or "") if entry]
    if not entries:
        entries = ["native"] if visible else [f"{DEFAULT[0]}.{DEFAULT[1]}"]
    numbers: list[Architecture] = []
    for entry in entries:
        numbers.extend(_parse_entry(entry, text or "", visible, supported))
    merged: dict[tuple[int, int, str], Architecture] = {}
    for each in numbers:
        key = (each.major, each.minor, each.suffix)
        merged[key] = replace(each, ptx=each.ptx or (key in merged and merged[key].ptx))
    return sorted(merged.values())


def _parse_entry(
    entry: str, text: str, visible: Sequence[tuple[int, int]], supported: Iterable[str] | None
) -> list[Architecture]:
    word = entry.lower()
    if word == "native":
        if not visible:
            raise CannotTell(
                f"{VARIABLE}={text} asks for the GPU present, but no GPU is visible; name one, like {VARIABLE}=9.0"
            )
        return [_architecture(major, minor, "", False) for major, minor in visible]
    base, ptx = (word[: -len("+ptx")], True) if word.endswith("+ptx") else (word, False)
    if base in ("all", "common"):
        known = _numbers(supported)
        wanted = known if base == "all" else [each for each in known if f"{each[0]}.{each[1]}" in COMMON]
        return _newest_ptx([_architecture(major, minor, "", False) for major, minor in wanted], ptx)
    if base in NAMES:
        parts = [_parse_entry(part, text, visible, supported)[0] for part in NAMES[base].split(";")]
        return _newest_ptx(parts, ptx)
    match = _ENTRY.fullmatch(word)
    if not match:
        raise CannotTell(
            f"{VARIABLE}={text}: '{entry}' is not an architecture; write 9.0, 9.0a, 9.0+PTX, sm_90, native, "
            "Hopper or the like, several separated by ;"
        )
    ptx = bool(match["ptx"]) or match["code"] == "compute"
    return [_architecture(int(match["major"]), int(match["minor"]), match["suffix"], ptx)]


def _architecture(major: int, minor: int, suffix: str, ptx: bool) -> Architecture:
    return Architecture(major, minor, "a" if (major, minor) == (9, 0) else suffix, ptx)


def _newest_ptx(architectures: list[Architecture], ptx: bool) -> list[Architecture]:
    newest = max(architectures)
    return [replace(each, ptx=ptx and each is newest) for each in architectures]


def _numbers(supported: Iterable[str] | None) -> list[tuple[int, int]]:
    """Compute capabilities out of names like "sm_90"; the common ones where the compiler was not asked."""
    names = [f"sm_{each.replace('.', '')}" for each in COMMON] if supported is None else supported
    matches = [re.fullmatch(r"sm_(\d+)(\d)", name) for name in names]
    return sorted({(int(match[1]), int(match[2])) for match in matches if match})


def check_supported(architectures: Sequence[Architecture], supported: Sequence[str], nvcc: str, source: str) -> None:
    """Raises CannotTell when nvcc (described by `nvcc`: path and version) lacks one; `source` says who asked for it."""
    known = _numbers(supported)
    for each in architectures:
        if (each.major, each.minor) not in known:
            listed = " ".join(f"{major}.{minor}" for major, minor in known)
            raise CannotTell(f"{source}: {nvcc} cannot compile for {each} ({each.sm}); it supports {listed}")


def uncovered(architectures: Sequence[Architecture], devices: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The compute capabilities among `devices` that no architecture covers."""
    return sorted({device for device in devices if not any(each.runs_on(device) for each in architectures)})
