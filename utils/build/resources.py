"""What each kernel takes of the GPU: registers, spills, stack and shared memory, as ptxas -v reports them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


@dataclass
class KernelResources:
    """One kernel for one architecture; registers and bytes of stack and spills per thread, shared bytes per block."""

    kernel: str
    architecture: str
    file: str
    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    shared: int = 0
    symbol: str = field(default="")

    @property
    def spills(self) -> bool:
        return bool(self.spill_stores or self.spill_loads)

    def record(self) -> dict[str, Any]:
        return asdict(self)


def parse(log: str, file: str) -> list[KernelResources]:
    """The kernels in the output of one nvcc run, in its order."""
    found: list[KernelResources] = []
    current: KernelResources | None = None
    subject = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            current = KernelResources(match[1], match[2], file, symbol=match[1])
            subject = match[1]
            found.append(current)
        elif match := _PROPERTIES.search(line):
            # Device functions that were not inlined have their own lines between the kernel's.
            subject = match[1]
        elif current and (match := _FRAME.search(line)):
            if subject == current.symbol:
                current.stack = int(match[1])
            current.spill_stores += int(match[2])
            current.spill_loads += int(match[3])
        elif current and (match := _USED.search(line)):
            current.registers = int(match[1])
            if shared := _SHARED.search(line):
                current.shared = int(shared[1]) + int(shared[2] or 0)
    return found


def demangle(symbols: Iterable[str]) -> dict[str, str]:
    """C++ names of linker symbols; a symbol stays as it is where c++filt is missing."""
    wanted = list(dict.fromkeys(symbols))
    tool = shutil.which("c++filt")
    if not wanted or not tool:
        return {symbol: symbol for symbol in wanted}
    try:
        answer = subprocess.run([tool], input="\n".join(wanted), capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return {symbol: symbol for symbol in wanted}
    return dict(zip(wanted, answer.splitlines(), strict=False))


def short_name(demangled: str) -> str:
    """`void ns::kernel<float, 4>(float*, int)` as `ns::kernel<float, 4>`: what tells instantiations apart, no more."""
    name, depth = demangled, 0
    for position in range(len(demangled) - 1, -1, -1):
        character = demangled[position]
        if character == ")":
            depth += 1
        elif character == "(":
            depth -= 1
            if depth == 0 and not demangled.startswith("(anonymous namespace)", position):
                name = demangled[:position]
                break
    # The return type, present only for templates, ends at the first space outside brackets.
    depth = 0
    name = name.replace("(anonymous namespace)::", "")
    for position, character in enumerate(name):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == " " and depth == 0:
            return name[position + 1 :]
    return name


def name_all(kernels: list[KernelResources]) -> None:
    """Replaces the symbols in `kernels` by short C++ names, in place."""
    names = demangle(each.symbol for each in kernels)
    for each in kernels:
        each.kernel = short_name(names.get(each.symbol, each.symbol))
