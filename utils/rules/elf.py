"""The little of an ELF shared object that the rules need: what it imports and which libraries it asks for.

Read directly (System V ABI, chapters 4 and 5; 64-bit little-endian, as CUDA's Linux hosts are), so that a check works
where no binutils are installed.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from utils.present.outcome import CannotTell

_SHT_DYNAMIC, _SHT_DYNSYM = 6, 11
_DT_NEEDED = 1
_SHN_UNDEF = 0


@dataclass(frozen=True)
class SharedObject:
    path: Path
    needed: list[str]
    undefined: list[str]


def read_shared_object(path: Path) -> SharedObject:
    """DT_NEEDED entries and undefined dynamic symbols of `path`. Raises CannotTell when it is no such file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from None
    try:
        return _read(path, data)
    except (struct.error, IndexError, ValueError):
        raise CannotTell(f"{path.name} is not a 64-bit ELF shared object with a section table; rebuild it") from None


def _read(path: Path, data: bytes) -> SharedObject:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not ELF64, little-endian")
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * entry) for index in range(count)]
    if not sections:
        raise ValueError("no section table")
    needed, undefined = [], []
    for _, kind, _, _, offset, size, link, _, _, each in sections:
        if kind not in {_SHT_DYNAMIC, _SHT_DYNSYM}:
            continue
        strings = sections[link][4]
        for at in range(offset, offset + size, each):
            if kind == _SHT_DYNAMIC:
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == _DT_NEEDED:
                    needed.append(_string(data, strings + value))
            else:
                name, _, _, section = struct.unpack_from("<IBBH", data, at)
                if section == _SHN_UNDEF and name:
                    undefined.append(_string(data, strings + name))
    return SharedObject(path, needed, sorted(undefined))


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def nested_name(symbol: str) -> list[str]:
    """The parts of a C++ symbol's nested name: at, _ops, mm, call for `_ZN2at4_ops2mm4callE...`; [] for others.

    Only plain source names are read (Itanium C++ ABI, 5.1.4); that is all the names the rules ask about.
    """
    match = re.match(r"_ZN[VK]*", symbol)
    if not match:
        return []
    at, parts = match.end(), []
    while length := re.match(r"\d+", symbol[at:]):
        start = at + length.end()
        at = start + int(length.group())
        parts.append(symbol[start:at])
    return parts
