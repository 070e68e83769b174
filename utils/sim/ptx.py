"""Inline PTX, translated instruction by instruction into calls of include/sim/ptx.h.

Registers are C++ variables: operands of the asm statement, `.reg` declarations and literals. A value travels as its
bits, and each instruction reads them as its own type. What is not known here becomes a stop that names the
instruction: it compiles, and a run that reaches it ends with "not simulated", never with a result.
"""

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
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
    "WARP_SZ": "32u",
    **{
        f"%{name}.{d}": f"{variable}.{d}"
        for name, variable in (("tid", "threadIdx"), ("ctaid", "blockIdx"), ("ntid", "blockDim"), ("nctaid", "gridDim"))
        for d in "xyz"
    },
}
_BINARY = {"add", "sub", "min", "max", "and", "or", "xor", "div", "rem", "shl", "shr"}
_UNARY = {
    "neg",
    "abs",
    "not",
    "rcp",
    "sqrt",
    "rsqrt",
    "ex2",
    "lg2",
    "sin",
    "cos",
    "tanh",
    "popc",
    "clz",
    "brev",
    "bfind",
}
_NOTHING = ("prefetch", "prefetchu", "applypriority", "discard", "griddepcontrol", "pragma", "setmaxnreg")
_ATOMIC = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"}
_STATE = ("global", "shared", "local", "const", "param", "generic")


@dataclass(frozen=True)
class Operand:
    constraint: str
    expression: str
    name: str = ""


def unsupported(what: str) -> str:
    quoted = what.replace("\\", "\\\\").replace('"', '\\"')
    return f'::sim::unsupported("{quoted}", __FILE__, __LINE__)'


class _NotKnown(Exception):
    pass


@dataclass
class _Translation:
    names: dict[str, str] = field(default_factory=dict)  # PTX name -> C++ expression
    declared: list[str] = field(default_factory=list)
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
        raise _NotKnown(f"the operand {text}")

    def read(self, text: str, kind: str) -> str:
        if kind not in TYPES:
            raise _NotKnown(f"the type .{kind}")
        text = text.strip()
        if kind in ("f32", "f64") and re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", text, re.I):
            return f"static_cast<{TYPES[kind]}>({text})"
        return f"::sim::as<{TYPES[kind]}>({self.value(text)})"

    def write(self, text: str, value: str) -> str:
        text = text.strip()
        if text == "_":
            return f"(void)({value});"
        if text not in self.names:
            raise _NotKnown(f"the operand {text}")
        return f"::sim::set({self.names[text]}, {value});"

    def address(self, text: str, state: str) -> str:
        match = re.fullmatch(
            r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?(?:0[xX][0-9a-fA-F]+|\d+|%\d+|%\[\w+\])))?\s*\]", text.strip()
        )
        if not match:
            raise _NotKnown(f"the address {text}")
        base = self.value(match[1])
        offset = f" + static_cast<long long>({self.value(match[2])})" if match[2] else ""
        return f"(::sim::{'shared' if state == 'shared' else 'global'}_pointer({base}){offset})"


def _split(text: str) -> list[str]:
    """Operands at the top level: commas inside braces, brackets and parentheses do not separate."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{[(" and 1) or ((c in "}])" and -1) or 0)
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last else out


def _vector(text: str) -> list[str]:
    text = text.strip()
    return _split(text[1:-1]) if text.startswith("{") else [text]


def _instructions(code: str) -> list[str]:
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


def translate(code: str, outputs: list[Operand], inputs: list[Operand]) -> str:
    """One C++ statement, without its semicolon, that does what the asm statement does."""
    state = _Translation()
    setup = []
    for index, operand in enumerate([*outputs, *inputs]):
        variable = f"sim_o{index}"
        if index < len(outputs):
            setup.append(f"auto& {variable} = {operand.expression};")
        elif "n" in operand.constraint:
            setup.append(f"const auto {variable} = static_cast<long long>({operand.expression});")
        else:
            letter = operand.constraint.strip("=+&")[-1:]
            setup.append(f"const auto {variable} = ::sim::Input<'{letter or 'r'}'>::of({operand.expression});")
        state.names[f"%{index}"] = variable
        if operand.name:
            state.names[f"%[{operand.name.strip('[]')}]"] = variable
    body: list[str] = []
    for text in _instructions(code):
        try:
            body.append(_instruction(state, text.replace("%%", "%")))
        except _NotKnown as unknown:
            shown = " ".join(text.split())
            reason = str(unknown)
            body.append(unsupported(f"PTX `{shown[:160]}`" + (f" ({reason})" if reason else "")) + ";")
        except (IndexError, KeyError):
            body.append(unsupported(f"PTX `{' '.join(text.split())[:160]}`") + ";")
    used = "".join(f"(void){v};" for v in dict.fromkeys(state.names.values()) if v.startswith("sim_o"))
    return "do { " + " ".join([*setup, used, *body]) + " } while (0)"


def _instruction(s: _Translation, text: str) -> str:
    if text in "{}":
        return text
    if text.startswith(".reg"):
        return _declare(s, text)
    guard = ""
    if text.startswith("@"):
        predicate, text = text[1:].split(None, 1)
        guard = f"if (::sim::as<bool>({s.value(predicate)})) "
    opcode, _, rest = text.partition(" ") if " " in text else (text, "", "")
    opcode = opcode.strip()
    if "\n" in opcode or "\t" in opcode:
        opcode, _, rest = re.sub(r"[\t\n]+", " ", text).partition(" ")
    statement = _operation(s, opcode, _split(rest.strip()))
    return guard + "{ " + statement + " }" if guard else statement


def _declare(s: _Translation, text: str) -> str:
    match = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S)
    if not match:
        raise _NotKnown("")
    out = ""
    for name in _split(match[2]):
        several = re.fullmatch(r"(%?\w+)<(\d+)>", name)
        for each in [f"{several[1]}{i}" for i in range(int(several[2]))] if several else [name]:
            variable = f"sim_r{s.registers}"
            s.registers += 1
            s.names[each] = variable
            out += f"{TYPES[match[1]]} {variable}{{}}; (void){variable}; "
    return out


def _operation(s: _Translation, opcode: str, a: list[str]) -> str:
    head, *mods = opcode.split(".")
    kinds = [m for m in mods if m in TYPES]
    kind = kinds[-1] if kinds else ""
    if head in _NOTHING:
        return ";"
    if head in ("membar", "fence"):
        if "proxy" in mods or "mbarrier_init" in mods:
            raise _NotKnown("")
        return "__threadfence();" if ("gl" in mods or "gpu" in mods or "sys" in mods) else "__threadfence_block();"
    if head == "nanosleep":
        return "__nanosleep(0);"
    if head == "createpolicy":
        return s.write(a[0], "0ull")
    if head in ("trap",):
        return "__trap();"
    if head == "activemask":
        return s.write(a[0], "__activemask()")
    if head in ("bar", "barrier"):
        return _barrier(s, mods, a)
    if head == "mov":
        return _move(s, kind, a)
    if head in ("ld", "ldu", "st"):
        return _memory(s, head, mods, kind, a)
    if head == "cp" and mods[:1] == ["async"]:
        return _cp_async(s, mods, a)
    if head in ("atom", "red"):
        return _atomic(s, head, mods, kind, a)
    if head in ("ldmatrix", "stmatrix"):
        return _matrix_move(s, head, mods, a)
    if head == "mma":
        return _mma(s, mods, a)
    if head == "cvt":
        return _convert(s, mods, kinds, a)
    if head == "cvta":
        to_shared = "shared" in mods
        if not to_shared:
            return s.write(a[0], f"::sim::as<unsigned long long>({s.value(a[1])})")
        if "to" in mods:
            return s.write(
                a[0],
                f"static_cast<unsigned long long>(__cvta_generic_to_shared(::sim::global_pointer({s.value(a[1])})))",
            )
        return s.write(a[0], f"reinterpret_cast<unsigned long long>(::sim::shared_pointer({s.value(a[1])}))")
    if head == "setp":
        compare = next(
            m
            for m in mods
            if m
            in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu")
        )
        if any(m in ("and", "or", "xor") for m in mods):
            raise _NotKnown("")
        p, _, q = a[0].partition("|")
        out = s.write(p, f"::sim::compare_{compare}({s.read(a[1], kind)}, {s.read(a[2], kind)})")
        return out + (s.write(q, f"!::sim::as<bool>({s.value(p)})") if q else "")
    if head == "selp":
        return s.write(a[0], f"::sim::as<bool>({s.value(a[3])}) ? {s.read(a[1], kind)} : {s.read(a[2], kind)}")
    if head in ("shfl", "vote", "match", "redux"):
        return _warp(s, head, mods, kind, a)
    if head in ("fma", "mad"):
        wide = "wide" in mods
        name = (
            "fma"
            if head == "fma" or kind in ("f32", "f64")
            else "mad_wide"
            if wide
            else "mad_hi"
            if "hi" in mods
            else "mad_lo"
        )
        last = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}[kind] if wide else kind
        return s.write(
            a[0],
            _saturated(
                mods, kind, f"::sim::ptx_{name}({s.read(a[1], kind)}, {s.read(a[2], kind)}, {s.read(a[3], last)})"
            ),
        )
    if head == "mul":
        name = "mul_wide" if "wide" in mods else "mul_hi" if "hi" in mods else "mul_lo"
        return s.write(a[0], _saturated(mods, kind, f"::sim::ptx_{name}({s.read(a[1], kind)}, {s.read(a[2], kind)})"))
    if head in _BINARY:
        name = f"{head}_nan" if head in ("min", "max") and "NaN" in mods else head
        second = "u32" if head in ("shl", "shr") else kind
        call = f"::sim::ptx_{name}({s.read(a[1], kind)}, {s.read(a[2], second)}"
        if len(a) == 4 and head in ("min", "max"):
            call = f"::sim::ptx_{name}({call}), {s.read(a[3], kind)}"
        if any(m in ("rz", "rm", "rp") for m in mods):
            raise _NotKnown("the rounding mode")
        return s.write(a[0], _saturated(mods, kind, call + ")"))
    if head in _UNARY:
        return s.write(a[0], f"::sim::ptx_{head}({s.read(a[1], kind)})")
    if head == "lop3":
        return s.write(
            a[0],
            f"::sim::ptx_lop3({', '.join(s.read(each, 'u32') for each in a[1:5])})",
        )
    if head == "prmt" and not set(mods) & {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}:
        return s.write(a[0], f"__byte_perm({s.read(a[1], 'u32')}, {s.read(a[2], 'u32')}, {s.read(a[3], 'u32')})")
    if head == "shf":
        clamp = "c" if "clamp" in mods else ""
        side = "l" if "l" in mods else "r"
        return s.write(
            a[0], f"__funnelshift_{side}{clamp}({s.read(a[1], 'u32')}, {s.read(a[2], 'u32')}, {s.read(a[3], 'u32')})"
        )
    if head in ("bfe", "bfi") and kind:
        extra = f", {s.read(a[4], 'u32')}" if head == "bfi" else ""
        second = s.read(a[2], kind if head == "bfi" else "u32")
        return s.write(a[0], f"::sim::ptx_{head}({s.read(a[1], kind)}, {second}, {s.read(a[3], 'u32')}{extra})")
    if head == "isspacep" and mods:
        return s.write(a[0], f"static_cast<bool>(__is{mods[0].capitalize()}(::sim::global_pointer({s.value(a[1])})))")
    if head == "copysign":
        return s.write(a[0], f"std::copysign({s.read(a[2], kind)}, {s.read(a[1], kind)})")
    raise _NotKnown("")


def _saturated(mods: list[str], kind: str, value: str) -> str:
    return f"__saturatef({value})" if "sat" in mods and kind == "f32" else value


def _barrier(s: _Translation, mods: list[str], a: list[str]) -> str:
    if "cluster" in mods:
        raise _NotKnown("thread block clusters")
    if "warp" in mods:
        return f"__syncwarp({s.read(a[0], 'u32')});"
    if "red" in mods:
        raise _NotKnown("")
    wait = "false" if "arrive" in mods else "true"
    whole = "false" if len(a) > 1 else "true"
    count = s.read(a[1], "u32") if len(a) > 1 else "0"
    return f"::sim::barrier({s.read(a[0], 'u32') if a else '0'}, {count}, false, {wait}, {whole}, __FILE__, __LINE__);"


def _move(s: _Translation, kind: str, a: list[str]) -> str:
    source, target = _vector(a[1]), _vector(a[0])
    if len(source) == 1 and len(target) == 1:
        return s.write(a[0], s.read(a[1], kind))
    if len(target) == 1:
        bits = {"b32": 32, "b64": 64, "u32": 32, "u64": 64}[kind] // len(source)
        parts = " | ".join(
            f"::sim::as<unsigned long long>(::sim::as<{TYPES[f'u{bits}']}>({s.value(v)})) << {bits * i}"
            for i, v in enumerate(source)
        )
        return s.write(a[0], f"static_cast<{TYPES[kind]}>({parts})")
    bits = {"b32": 32, "b64": 64, "u32": 32, "u64": 64}[kind] // len(target)
    whole = s.read(a[1], kind)
    return "".join(s.write(t, f"static_cast<{TYPES[f'u{bits}']}>({whole} >> {bits * i})") for i, t in enumerate(target))


def _state(mods: list[str]) -> str:
    for mod in mods:
        if mod.startswith("shared::cluster"):
            raise _NotKnown("distributed shared memory")
        for state in _STATE:
            if mod == state or mod.startswith(f"{state}::cta"):
                return state
    return "generic"


def _memory(s: _Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    if "param" in mods or "async" in mods:
        raise _NotKnown("")
    state = _state(mods)
    ordered = any(m in ("volatile", "acquire", "release", "relaxed") for m in mods)
    width = 4 if "v4" in mods else 2 if "v2" in mods else 8 if "v8" in mods else 1
    typed = TYPES[kind]
    pointer = f"reinterpret_cast<{typed}*>({s.address(a[1] if head != 'st' else a[0], state)})"
    values = _vector(a[0] if head != "st" else a[1])
    if len(values) != width:
        raise _NotKnown("")
    if head != "st":
        if ordered:
            return (
                f"{{ {typed}* sim_p = {pointer}; "
                + "".join(s.write(v, f"::sim::ordered_load(sim_p + {i})") for i, v in enumerate(values))
                + " }"
            )
        return (
            f"{{ const auto sim_v = ::sim::vector_load<{typed}, {width}>({pointer}, __FILE__, __LINE__); "
            + "".join(s.write(v, f"sim_v.value[{i}]") for i, v in enumerate(values))
            + " }"
        )
    read = [s.read(v, kind) for v in values]
    if ordered:
        fence = "__threadfence(); " if "release" in mods else ""
        return (
            f"{{ {fence}{typed}* sim_p = {pointer}; "
            + "".join(f"::sim::ordered_store(sim_p + {i}, {v}); " for i, v in enumerate(read))
            + "}"
        )
    several = f"::sim::Several<{typed}, {width}>{{{{{', '.join(read)}}}}}"
    return f"::sim::vector_store<{typed}, {width}>({pointer}, {several}, __FILE__, __LINE__);"


def _cp_async(s: _Translation, mods: list[str], a: list[str]) -> str:
    if "bulk" in mods or "mbarrier" in mods or any(m.startswith("mbarrier") for m in mods):
        raise _NotKnown("TMA and mbarrier")
    if "commit_group" in mods:
        return "::sim::async_commit();"
    if "wait_group" in mods:
        return f"::sim::async_wait({s.read(a[0], 'u32')});"
    if "wait_all" in mods:
        return "::sim::async_wait(~0u);"
    if any(m.startswith("shared::cluster") for m in mods):
        raise _NotKnown("distributed shared memory")
    hinted = "cache_hint" in " ".join(mods)
    operands = a[:-1] if hinted else a
    size = s.read(operands[2], "u32")
    source_size = s.read(operands[3], "u32") if len(operands) > 3 else size
    places = f"{s.address(a[0], 'shared')}, {s.address(a[1], 'global')}"
    return f"::sim::async_copy({places}, {size}, {source_size}, __FILE__, __LINE__);"


def _atomic(s: _Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    operation = next((m for m in mods if m in _ATOMIC), None)
    if operation is None or "async" in mods:
        raise _NotKnown("")
    values = a[1:] if head == "red" else a[2:]
    place = a[0] if head == "red" else a[1]
    width = 4 if "v4" in mods else 2 if "v2" in mods else 1
    pointer = f"reinterpret_cast<{TYPES[kind]}*>({s.address(place, _state(mods))})"
    if width > 1:
        if head != "red":
            raise _NotKnown("")
        return "".join(
            f"::sim::ptx_atomic_{operation}({pointer} + {i}, {s.read(v, kind)}); "
            for i, v in enumerate(_vector(values[0]))
        )
    call = f"::sim::ptx_atomic_{operation}({pointer}, {', '.join(s.read(v, kind) for v in values)})"
    fence = "__threadfence(); " if "release" in mods or "acq_rel" in mods else ""
    return fence + (f"(void){call};" if head == "red" else s.write(a[0], call))


def _matrix_move(s: _Translation, head: str, mods: list[str], a: list[str]) -> str:
    count = next((int(m[1:]) for m in mods if m in ("x1", "x2", "x4")), 0)
    if not count or "m8n8" not in mods or "b16" not in mods:
        raise _NotKnown("")
    transposed = "true" if "trans" in mods else "false"
    values = _vector(a[0] if head == "ldmatrix" else a[1])
    address = s.address(a[1] if head == "ldmatrix" else a[0], "shared")
    if head == "ldmatrix":
        return (
            f"{{ unsigned sim_m[{count}]; "
            f"::sim::ldmatrix<{count}, {transposed}>(sim_m, {address}, __FILE__, __LINE__); "
            + "".join(s.write(v, f"sim_m[{i}]") for i, v in enumerate(values))
            + " }"
        )
    read = ", ".join(s.read(v, "u32") for v in values)
    held = f"const unsigned sim_m[{count}] = {{{read}}};"
    return f"{{ {held} ::sim::stmatrix<{count}, {transposed}>(sim_m, {address}, __FILE__, __LINE__); }}"


_MMA_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "f32": 32, "s32": 32, "e4m3": 8, "e5m2": 8}


def _mma(s: _Translation, mods: list[str], a: list[str]) -> str:
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", m) for m in mods if re.fullmatch(r"m\d+n\d+k\d+", m)), None)
    kinds = [m for m in mods if m in _MMA_BITS]
    if shape is None or len(kinds) != 4 or "sync" not in mods or "row" not in mods or "col" not in mods:
        raise _NotKnown("")
    m, n, k = (int(x) for x in shape.groups())
    d, x, y, c = kinds
    if m not in (8, 16) or n != 8:
        raise _NotKnown("")
    tags = {
        "f16": "Half",
        "bf16": "Bfloat",
        "tf32": "Tf32",
        "f64": "double",
        "s8": "signed char",
        "u8": "unsigned char",
        "f32": "float",
        "s32": "int",
        "e4m3": "E4m3",
        "e5m2": "E5m2",
    }
    names = [tags[t] if t in ("f64", "s8", "u8", "f32", "s32") else f"::sim::{tags[t]}" for t in (d, x, y, c)]
    vectors = [_vector(each) for each in a]
    word = "unsigned long long" if d == "f64" else "unsigned"
    lists = [", ".join(f"::sim::as<{word}>({s.value(v)})" for v in vector) for vector in vectors[1:]]
    out = f"{{ const {word} sim_a[] = {{{lists[0]}}}, sim_b[] = {{{lists[1]}}}, sim_c[] = {{{lists[2]}}}; "
    out += f"{word} sim_d[{len(vectors[0])}]; "
    out += f"::sim::mma<{m}, {n}, {k}, {', '.join(names)}>(sim_d, sim_a, sim_b, sim_c, __FILE__, __LINE__); "
    return out + "".join(s.write(v, f"sim_d[{i}]") for i, v in enumerate(vectors[0])) + " }"


def _convert(s: _Translation, mods: list[str], kinds: list[str], a: list[str]) -> str:
    if "tf32" in mods:
        mode = "rna" if "rna" in mods else "rn" if "rn" in mods else "rz"
        return s.write(a[0], f"::sim::to_tf32_{mode}({s.read(a[1], 'f32')})")
    small = next((m for m in mods if m in ("e4m3x2", "e5m2x2")), None)
    if small:
        tag = "E4m3" if small == "e4m3x2" else "E5m2"
        if kinds == ["f32"]:
            return s.write(a[0], f"::sim::pack_fp8<::sim::{tag}>({s.read(a[1], 'f32')}, {s.read(a[2], 'f32')})")
        raise _NotKnown("")
    if len(kinds) != 2:
        raise _NotKnown("")
    target, source = kinds
    rounding = next((m for m in mods if m in ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")), "rn")
    if target in ("f16x2", "bf16x2"):
        if rounding != "rn" or "relu" in mods:
            raise _NotKnown("")
        return s.write(a[0], f"::sim::pack_pair<{TYPES[target]}>({s.read(a[1], 'f32')}, {s.read(a[2], 'f32')})")
    saturate = "true" if "sat" in mods else "false"
    return s.write(
        a[0],
        f"::sim::convert<{TYPES[target]}>({s.read(a[1], source)}, ::sim::Rounding::{rounding}, {saturate})",
    )


def _warp(s: _Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    if "sync" not in mods:
        raise _NotKnown("")
    if head == "shfl":
        mode = next(m for m in mods if m in ("idx", "up", "down", "bfly"))
        d, _, p = a[0].partition("|")
        read = ", ".join(s.read(a[k], "u32") for k in (4, 1, 2, 3))
        call = f"::sim::ptx_shuffle(::sim::Mode::{mode}, {read}, __FILE__, __LINE__)"
        out = f"{{ const auto sim_s = {call}; {s.write(d, 'sim_s.value')} "
        return out + (s.write(p, "sim_s.inside") if p else "") + " }"
    if head == "vote":
        mode = next(m for m in mods if m in ("ballot", "any", "all", "uni"))
        return s.write(a[0], f"__{mode}_sync({s.read(a[2], 'u32')}, {s.read(a[1], 'pred')})")
    if head == "match" and "any" in mods:
        return s.write(a[0], f"__match_any_sync({s.read(a[2], 'u32')}, {s.read(a[1], kind)})")
    if head == "redux":
        operation = next(m for m in mods if m in ("add", "min", "max", "and", "or", "xor"))
        bitwise = operation in ("and", "or", "xor")
        return s.write(
            a[0],
            f"__reduce_{operation}_sync({s.read(a[2], 'u32')}, {s.read(a[1], 'u32' if bitwise else kind)})",
        )
    raise _NotKnown("")
