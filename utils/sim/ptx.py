"""Inline PTX, translated instruction by instruction into calls of include/sim/ptx.h.

Registers are C++ variables: operands of the asm statement, `.reg` declarations and literals. A value travels as its
bits, and each instruction reads them as its own type. What is not known here becomes a stop that names the
instruction: it compiles, and a run that reaches it ends with "not simulated", never with a result.
"""

from __future__ import annotations

import re

from utils.sim import ptx_async
from utils.sim.ptx_operands import (
    TYPES,
    NotKnown,
    Operand,
    Translation,
    declare,
    instructions,
    label_of,
    split,
    state_space,
    vector,
)

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


def unsupported(what: str) -> str:
    quoted = what.replace("\\", "\\\\").replace('"', '\\"')
    return f'::sim::unsupported("{quoted}", __FILE__, __LINE__)'


def translate(code: str, outputs: list[Operand], inputs: list[Operand]) -> str:
    """One C++ statement, without its semicolon, that does what the asm statement does."""
    state = Translation()
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
    found = instructions(code)
    labels = [label for label in map(label_of, found) if label]
    state.labels = {label: f"sim_l{n}" for n, label in enumerate(labels) if labels.count(label) == 1}
    for text in found:
        try:
            body.append(_instruction(state, text.replace("%%", "%")))
        except NotKnown as unknown:
            shown = " ".join(text.split())
            reason = str(unknown)
            body.append(unsupported(f"PTX `{shown[:160]}`" + (f" ({reason})" if reason else "")) + ";")
        except (IndexError, KeyError):
            body.append(unsupported(f"PTX `{' '.join(text.split())[:160]}`") + ";")
    used = "".join(f"(void){v};" for v in dict.fromkeys(state.names.values()) if v.startswith("sim_o"))
    # Labels are the statement's own: a function may hold it twice. Registers stand before all of them, as C++ lets no
    # jump pass over an initialisation.
    local = f"__label__ {', '.join(state.labels.values())};" if state.labels else ""
    return "do { " + " ".join([local, *setup, used, *state.declared, *body]).strip() + " } while (0)"


def _instruction(s: Translation, text: str) -> str:
    if text in "{}":
        return text
    if text.startswith(".reg"):
        s.declared.append(declare(s, text))
        return ""
    label = label_of(text)
    if label:
        if label not in s.labels:
            raise NotKnown("a label that is there twice")
        return f"{s.labels[label]}:;"
    guard = ""
    if text.startswith("@"):
        predicate, text = text[1:].split(None, 1)
        guard = f"if (::sim::as<bool>({s.value(predicate)})) "
    opcode, _, rest = text.partition(" ") if " " in text else (text, "", "")
    opcode = opcode.strip()
    if "\n" in opcode or "\t" in opcode:
        opcode, _, rest = re.sub(r"[\t\n]+", " ", text).partition(" ")
    statement = _operation(s, opcode, split(rest.strip()))
    return guard + "{ " + statement + " }" if guard else statement


def _operation(s: Translation, opcode: str, a: list[str]) -> str:
    head, *mods = opcode.split(".")
    kinds = [m for m in mods if m in TYPES]
    kind = kinds[-1] if kinds else ""
    if head in _NOTHING:
        return ";"
    if head == "bra":
        if a[0] not in s.labels:
            raise NotKnown("the label")
        return f"goto {s.labels[a[0]]};"
    if head == "mbarrier":
        return ptx_async.mbarrier(s, mods, a)
    if head in ("membar", "fence"):
        if "proxy" in mods:
            if mods[:2] != ["proxy", "async"] or len(mods) > 3:
                raise NotKnown("")
            return "::sim::proxy_fence(); __threadfence_block();"
        return "__threadfence();" if set(mods) & {"gl", "gpu", "sys", "cluster"} else "__threadfence_block();"
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
    if head == "mapa":
        rank = s.read(a[2], "u32")
        place = "__FILE__, __LINE__"
        if any(mod.startswith("shared::cluster") for mod in mods):
            return s.write(a[0], f"::sim::map_shared_address({s.read(a[1], 'u32')}, {rank}, {place})")
        mapped = f"::sim::map_shared(::sim::global_pointer({s.value(a[1])}), {rank}, {place})"
        return s.write(a[0], f"reinterpret_cast<unsigned long long>({mapped})")
    if head == "getctarank":
        if any(mod.startswith("shared::cluster") for mod in mods):
            there = f"::sim::cluster_pointer({s.read(a[1], 'u32')}, __FILE__, __LINE__)"
        else:
            there = f"::sim::global_pointer({s.value(a[1])})"
        return s.write(a[0], f"::sim::shared_rank({there})")
    if head == "setp":
        compare = next(
            m
            for m in mods
            if m
            in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu")
        )
        if any(m in ("and", "or", "xor") for m in mods):
            raise NotKnown("")
        p, _, q = a[0].partition("|")
        out = s.write(p, f"::sim::compare_{compare}({s.read(a[1], kind)}, {s.read(a[2], kind)})")
        return out + (s.write(q, f"!::sim::as<bool>({s.value(p)})") if q else "")
    if head == "selp":
        return s.write(a[0], f"::sim::as<bool>({s.value(a[3])}) ? {s.read(a[1], kind)} : {s.read(a[2], kind)}")
    if head in ("shfl", "vote", "match", "redux", "elect"):
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
            raise NotKnown("the rounding mode")
        return s.write(a[0], _saturated(mods, kind, call + ")"))
    if head in _UNARY:
        return s.write(a[0], f"::sim::ptx_{head}({s.read(a[1], kind)})")
    if head == "lop3":
        return s.write(
            a[0],
            f"::sim::ptx_lop3({', '.join(s.read(each, 'u32') for each in a[1:5])})",
        )
    if head == "prmt" and not set(mods) & {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}:
        return s.write(a[0], f"::sim::ptx_prmt({s.read(a[1], 'u32')}, {s.read(a[2], 'u32')}, {s.read(a[3], 'u32')})")
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
    raise NotKnown("")


def _saturated(mods: list[str], kind: str, value: str) -> str:
    return f"__saturatef({value})" if "sat" in mods and kind == "f32" else value


def _barrier(s: Translation, mods: list[str], a: list[str]) -> str:
    if "cluster" in mods:
        if "wait" in mods:
            return "::sim::wide_wait(::sim::Wide::CLUSTER, __FILE__, __LINE__);"
        ordering = "false" if "relaxed" in mods else "true"
        return f"::sim::wide_arrive(::sim::Wide::CLUSTER, {ordering}, __FILE__, __LINE__);"
    if "warp" in mods:
        return f"__syncwarp({s.read(a[0], 'u32')});"
    if "red" in mods:
        raise NotKnown("")
    wait = "false" if "arrive" in mods else "true"
    whole = "false" if len(a) > 1 else "true"
    count = s.read(a[1], "u32") if len(a) > 1 else "0"
    return f"::sim::barrier({s.read(a[0], 'u32') if a else '0'}, {count}, false, {wait}, {whole}, __FILE__, __LINE__);"


def _move(s: Translation, kind: str, a: list[str]) -> str:
    source, target = vector(a[1]), vector(a[0])
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


def _memory(s: Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    if "param" in mods or "async" in mods:
        raise NotKnown("")
    state = state_space(mods)
    ordered = any(m in ("volatile", "acquire", "release", "relaxed") for m in mods)
    width = 4 if "v4" in mods else 2 if "v2" in mods else 8 if "v8" in mods else 1
    typed = TYPES[kind]
    pointer = f"reinterpret_cast<{typed}*>({s.address(a[1] if head != 'st' else a[0], state)})"
    values = vector(a[0] if head != "st" else a[1])
    if len(values) != width:
        raise NotKnown("")
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


def _cp_async(s: Translation, mods: list[str], a: list[str]) -> str:
    if "bulk" in mods:
        return ptx_async.bulk(s, mods, a)
    if "mbarrier" in mods:
        return ptx_async.arrive_after_copies(s, mods, a)
    if "commit_group" in mods:
        return "::sim::async_commit();"
    if "wait_group" in mods:
        return f"::sim::async_wait({s.read(a[0], 'u32')});"
    if "wait_all" in mods:
        return "::sim::async_wait(~0u);"
    if state_space(mods) == "cluster":
        raise NotKnown("")
    hinted = "cache_hint" in " ".join(mods)
    operands = a[:-1] if hinted else a
    size = s.read(operands[2], "u32")
    source_size = s.read(operands[3], "u32") if len(operands) > 3 else size
    places = f"{s.address(a[0], 'shared')}, {s.address(a[1], 'global')}"
    return f"::sim::async_copy({places}, {size}, {source_size}, __FILE__, __LINE__);"


def _atomic(s: Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    operation = next((m for m in mods if m in _ATOMIC), None)
    if operation is None or "async" in mods:
        raise NotKnown("")
    values = a[1:] if head == "red" else a[2:]
    place = a[0] if head == "red" else a[1]
    width = 4 if "v4" in mods else 2 if "v2" in mods else 1
    pointer = f"reinterpret_cast<{TYPES[kind]}*>({s.address(place, state_space(mods))})"
    if width > 1:
        if head != "red":
            raise NotKnown("")
        return "".join(
            f"::sim::ptx_atomic_{operation}({pointer} + {i}, {s.read(v, kind)}); "
            for i, v in enumerate(vector(values[0]))
        )
    call = f"::sim::ptx_atomic_{operation}({pointer}, {', '.join(s.read(v, kind) for v in values)})"
    fence = "__threadfence(); " if "release" in mods or "acq_rel" in mods else ""
    return fence + (f"(void){call};" if head == "red" else s.write(a[0], call))


def _matrix_move(s: Translation, head: str, mods: list[str], a: list[str]) -> str:
    count = next((int(m[1:]) for m in mods if m in ("x1", "x2", "x4")), 0)
    if not count or "m8n8" not in mods or "b16" not in mods:
        raise NotKnown("")
    transposed = "true" if "trans" in mods else "false"
    values = vector(a[0] if head == "ldmatrix" else a[1])
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


def _mma(s: Translation, mods: list[str], a: list[str]) -> str:
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", m) for m in mods if re.fullmatch(r"m\d+n\d+k\d+", m)), None)
    kinds = [m for m in mods if m in _MMA_BITS]
    if shape is None or len(kinds) != 4 or "sync" not in mods or "row" not in mods or "col" not in mods:
        raise NotKnown("")
    m, n, k = (int(x) for x in shape.groups())
    d, x, y, c = kinds
    if m not in (8, 16) or n != 8:
        raise NotKnown("")
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
    vectors = [vector(each) for each in a]
    word = "unsigned long long" if d == "f64" else "unsigned"
    lists = [", ".join(f"::sim::as<{word}>({s.value(v)})" for v in each) for each in vectors[1:]]
    out = f"{{ const {word} sim_a[] = {{{lists[0]}}}, sim_b[] = {{{lists[1]}}}, sim_c[] = {{{lists[2]}}}; "
    out += f"{word} sim_d[{len(vectors[0])}]; "
    out += f"::sim::mma<{m}, {n}, {k}, {', '.join(names)}>(sim_d, sim_a, sim_b, sim_c, __FILE__, __LINE__); "
    return out + "".join(s.write(v, f"sim_d[{i}]") for i, v in enumerate(vectors[0])) + " }"


def _convert(s: Translation, mods: list[str], kinds: list[str], a: list[str]) -> str:
    if "tf32" in mods:
        mode = "rna" if "rna" in mods else "rn" if "rn" in mods else "rz"
        return s.write(a[0], f"::sim::to_tf32_{mode}({s.read(a[1], 'f32')})")
    small = next((m for m in mods if m in ("e4m3x2", "e5m2x2")), None)
    if small:
        tag = "E4m3" if small == "e4m3x2" else "E5m2"
        if kinds == ["f32"]:
            return s.write(a[0], f"::sim::pack_fp8<::sim::{tag}>({s.read(a[1], 'f32')}, {s.read(a[2], 'f32')})")
        raise NotKnown("")
    if len(kinds) != 2:
        raise NotKnown("")
    target, source = kinds
    rounding = next((m for m in mods if m in ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")), "rn")
    if target in ("f16x2", "bf16x2"):
        if rounding != "rn" or "relu" in mods:
            raise NotKnown("")
        return s.write(a[0], f"::sim::pack_pair<{TYPES[target]}>({s.read(a[1], 'f32')}, {s.read(a[2], 'f32')})")
    saturate = "true" if "sat" in mods else "false"
    return s.write(
        a[0],
        f"::sim::convert<{TYPES[target]}>({s.read(a[1], source)}, ::sim::Rounding::{rounding}, {saturate})",
    )


def _warp(s: Translation, head: str, mods: list[str], kind: str, a: list[str]) -> str:
    if "sync" not in mods:
        raise NotKnown("")
    if head == "shfl":
        mode = next(m for m in mods if m in ("idx", "up", "down", "bfly"))
        d, _, p = a[0].partition("|")
        read = ", ".join(s.read(a[k], "u32") for k in (4, 1, 2, 3))
        call = f"::sim::ptx_shuffle(::sim::Mode::{mode}, {read}, __FILE__, __LINE__)"
        out = f"{{ const auto sim_s = {call}; {s.write(d, 'sim_s.value')} "
        return out + (s.write(p, "sim_s.inside") if p else "") + " }"
    if head == "elect":
        d, _, p = a[0].partition("|")
        ballot = f"__ballot_sync({s.read(a[1], 'u32')}, 1)"
        out = f"{{ const unsigned sim_e = static_cast<unsigned>(__builtin_ctz({ballot})); {s.write(d, 'sim_e')} "
        return out + (s.write(p, "::sim::lane_id() == sim_e") if p else "") + " }"
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
    raise NotKnown("")
