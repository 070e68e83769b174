"""What the instructions of inline PTX are made of: operands as C++ expressions, registers, addresses, vectors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TYPES = {
    "f32": "float", "f64": "double", "f16": "::sim::Half", "bf16": "::sim::Bfloat",
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char",
    "u16": "unsigned short", "s16": "short", "b16": "unsigned short",
    "u32": "unsigned", "s32": "int", "b32": "unsigned",
    "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long",
    "f16x2": "::sim::Half2", "bf16x2": "::sim::Bfloat2", "pred": "bool",
}  # fmt: skip
_STATE = ("global", "shared", "local", "const", "param", "generic")
_SPECIAL = {
    "%laneid": "::sim::lane_id()",
    "%warpid": "::sim::warp_id()",
    "%smid": "(blockIdx.x % 8u)",
    "%nsmid": "8u",
    "%clock": "static_cast<unsigned>(clock64())",
    "%clock64": "static_cast<unsigned long long>(clock64())",
    "%globaltimer": "globaltimer()",
    "%lanemask_eq": "(1u << ::sim::lane_id())",
    "%lanemask_lt": "((1u << ::sim::lane_id()) - 1u)",
    "%lanemask_le": "((2u << ::sim::lane_id()) - 1u)",
    "%lanemask_gt": "~((2u << ::sim::lane_id()) - 1u)",
    "%lanemask_ge": "~((1u << ::sim::lane_id()) - 1u)",
    "%cluster_ctarank": "::sim::cluster_rank()",
    "%cluster_nctarank": "__clusterSizeInBlocks()",
    "%is_explicit_cluster": "(__clusterSizeInBlocks() > 1u)",
    "WARP_SZ": "32u",
    **{
        f"%{name}.{d}": f"{variable}.{d}"
        for name, variable in (
            ("tid", "threadIdx"),
            ("ctaid", "blockIdx"),
            ("ntid", "blockDim"),
            ("nctaid", "gridDim"),
            ("cluster_ctaid", "__clusterRelativeBlockIdx()"),
            ("cluster_nctaid", "__clusterDim()"),
            ("clusterid", "__clusterIdx()"),
            ("nclusterid", "__clusterGridDimInClusters()"),
        )
        for d in "xyz"
    },
}


@dataclass(frozen=True)
class Operand:
    constraint: str
    expression: str
    name: str = ""


class NotKnown(Exception):
    """An instruction, or a part of one, that the simulator does not know; its text may say which part."""


@dataclass
class Translation:
    names: dict[str, str] = field(default_factory=dict)  # PTX name -> C++ expression
    labels: dict[str, str] = field(default_factory=dict)  # PTX label -> C++ label
    declared: list[str] = field(default_factory=list)  # of the registers
    registers: int = 0

    def value(self, text: str) -> str:
        text = text.strip()
        negate = text.startswith("!")
        if negate:
            return f"!::sim::as<bool>({self.value(text[1:])})"
        if text in self.names:
            return self.names[text]
        if text in _SPECIAL:
            return _SPECIAL[text]
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
            return f"::sim::bits_as<float>(0x{text[2:]}u)"
        if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
            return f"::sim::bits_as<double>(0x{text[2:]}ull)"
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return (
                f"static_cast<long long>({text.rstrip('U')}ull)"
                if not text.startswith("-")
                else f"-static_cast<long long>({text[1:]}ull)"
            )
        if re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", text, re.I):
            return f"({text})"
        raise NotKnown(f"the operand {text}")

    def read(self, text: str, kind: str) -> str:
        if kind not in TYPES:
            raise NotKnown(f"the type .{kind}")
        text = text.strip()
        if kind in ("f32", "f64") and re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", text, re.I):
            return f"static_cast<{TYPES[kind]}>({text})"
        return f"::sim::as<{TYPES[kind]}>({self.value(text)})"

    def write(self, text: str, value: str) -> str:
        text = text.strip()
        if text == "_":
            return f"(void)({value});"
        if text not in self.names:
            raise NotKnown(f"the operand {text}")
        return f"::sim::set({self.names[text]}, {value});"

    def address(self, text: str, state: str) -> str:
        match = re.fullmatch(
            r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?(?:0[xX][0-9a-fA-F]+|\d+|%\d+|%\[\w+\])))?\s*\]", text.strip()
        )
        if not match:
            raise NotKnown(f"the address {text}")
        base = self.value(match[1])
        offset = f" + static_cast<long long>({self.value(match[2])})" if match[2] else ""
        if state == "cluster":
            # The whole address is one number: an offset must not leave the block that it begins in.
            return f"::sim::cluster_pointer(::sim::as<unsigned long long>({base}){offset}, __FILE__, __LINE__)"
        return f"(::sim::{'shared' if state == 'shared' else 'global'}_pointer({base}){offset})"


def state_space(mods: list[str]) -> str:
    for mod in mods:
        if mod.startswith("shared::cluster"):
            return "cluster"
        for state in _STATE:
            if mod == state or mod.startswith(f"{state}::cta"):
                return state
    return "generic"


def label_of(text: str) -> str:
    """The label that one of `instructions` is; "" where it is none."""
    return text[:-1].strip() if re.fullmatch(r"[\w$%=]+\s*:", text) else ""


def split(text: str) -> list[str]:
    """Operands at the top level: commas inside braces, brackets and parentheses do not separate."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{[(" and 1) or ((c in "}])" and -1) or 0)
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last else out


def vector(text: str) -> list[str]:
    text = text.strip()
    return split(text[1:-1]) if text.startswith("{") else [text]


def instructions(code: str) -> list[str]:
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", code, flags=re.S)
    parts: list[str] = []
    depth, start = 0, 0
    # A brace opens a block where an instruction would start, and a vector elsewhere.
    for i, c in enumerate(code):
        before = code[start:i].strip()
        if c == "{" and not before:
            parts.append("{")
            start = i + 1
        elif c == "}" and not before and depth == 0:
            parts.append("}")
            start = i + 1
        elif c == ":" and depth == 0 and label_of(before + ":") and code[i + 1 : i + 2] != ":":
            parts.append(before + ":")
            start = i + 1
        elif c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == ";" and depth == 0:
            if before:
                parts.append(before)
            start = i + 1
    if code[start:].strip():
        parts.append(code[start:].strip())
    return parts


def declare(s: Translation, text: str) -> str:
    match = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S)
    if not match:
        raise NotKnown("")
    out = ""
    for name in split(match[2]):
        several = re.fullmatch(r"(%?\w+)<(\d+)>", name)
        for each in [f"{several[1]}{i}" for i in range(int(several[2]))] if several else [name]:
            variable = f"sim_r{s.registers}"
            s.registers += 1
            s.names[each] = variable
            out += f"{TYPES[match[1]]} {variable}{{}}; (void){variable}; "
    return out
