"""Functions declared and defined in the sources, and whether the two sides of an `extern "C"` boundary agree.

C linkage carries no types: a launcher declared `f(float*, int)` in the binding and defined `f(float*, long)` in the .cu
links in silence and reads garbage. The two are compared here, from syntax trees. A difference counts only when it is
certain: types are resolved as far as the language's and CUDA's own names go, and whatever an alias, a macro or an #if
could make equal is taken as equal.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Type:
    """A type as far as passing it matters: base name, levels of indirection; `sure` when no alias is involved."""

    base: str
    depth: int
    reference: bool
    sure: bool


@dataclass(frozen=True)
class Parameter:
    """A parameter, or what a function returns; `opaque` when it is one bare name that could be a macro for anything."""

    text: str
    type: Type
    opaque: bool = False


@dataclass(frozen=True)
class Function:
    """A function declaration or definition at file level.

    `certain` is false inside an #if, near a syntax error, or when a macro may stand behind the name; `local` when the
    linker never sees it (static, inline, anonymous namespace).
    """

    name: str
    file: str
    line: int
    c_linkage: bool
    defined: bool
    certain: bool
    local: bool
    returns: Parameter
    parameters: tuple[Parameter, ...] = field(default=())

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def signature(self) -> str:
        return f"{self.returns.text} {self.name}({', '.join(each.text for each in self.parameters)})"


# One name for each type of the LP64 model, and for what CUDA names twice.
_SAME = {
    "char": "i8",
    "signed char": "i8",
    "int8_t": "i8",
    "unsigned char": "u8",
    "uint8_t": "u8",
    "short": "i16",
    "int16_t": "i16",
    "unsigned short": "u16",
    "uint16_t": "u16",
    "int": "i32",
    "signed": "i32",
    "int32_t": "i32",
    "unsigned": "u32",
    "uint": "u32",
    "uint32_t": "u32",
    "long": "i64",
    "long long": "i64",
    "int64_t": "i64",
    "ptrdiff_t": "i64",
    "ssize_t": "i64",
    "intptr_t": "i64",
    "unsigned long": "u64",
    "unsigned long long": "u64",
    "uint64_t": "u64",
    "size_t": "u64",
    "uintptr_t": "u64",
    "half": "half",
    "__half": "half",
    "half2": "half2",
    "__half2": "half2",
    "nv_bfloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat162": "bf162",
    "__nv_bfloat162": "bf162",
    "cudaError": "cudaError_t",
}
_OPAQUE_POINTERS = {
    "cudaStream_t": "CUstream_st",
    "CUstream": "CUstream_st",
    "cudaEvent_t": "CUevent_st",
    "CUevent": "CUevent_st",
}
_KNOWN = {
    *_SAME.values(),
    *_OPAQUE_POINTERS.values(),
    *("void", "bool", "float", "double", "long double", "dim3"),
    *(
        f"{base}{width}"
        for base in ("float", "double", "int", "uint", "char", "uchar", "short", "ushort")
        for width in (2, 3, 4)
    ),
}


_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)


def parse(texts: Mapping[str, bytes]) -> list[Function]:
    """The functions of C++ or CUDA sources, as file name -> text. Raises ImportError where tree-sitter is missing.

    A name that any of the texts defines as a macro is taken to stand for anything.
    """
    import tree_sitter
    import tree_sitter_cuda

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    macros = {name.decode("utf-8", "replace") for text in texts.values() for name in _DEFINE.findall(text)}
    found: list[Function] = []
    for file, text in texts.items():
        found.extend(_functions(parser.parse(text).root_node, file, macros, c_linkage=False, certain=True, local=False))
    return found


def parse_files(paths: Iterable[Path], shown: Callable[[Path], str]) -> list[Function]:
    """The functions of all readable `paths`; `shown` gives the name of a path in messages."""
    texts = {}
    for path in paths:
        with contextlib.suppress(OSError):
            texts[shown(path)] = path.read_bytes()
    return parse(texts)


def _text(node: Any) -> str:
    return " ".join(node.text.decode("utf-8", "replace").split())


def _functions(
    node: Any, file: str, macros: set[str], c_linkage: bool, certain: bool, local: bool
) -> Iterator[Function]:
    for child in node.children:
        kind = child.type
        if kind == "linkage_specification":
            linkage = child.child_by_field_name("value")
            is_c = linkage is not None and _text(linkage) == '"C"'
            yield from _functions(child, file, macros, is_c, certain, local)
        elif kind.startswith(("preproc_if", "preproc_el")):
            yield from _functions(child, file, macros, c_linkage, False, local)
        elif kind == "namespace_definition":
            anonymous = child.child_by_field_name("name") is None
            yield from _functions(child, file, macros, c_linkage, certain, local or anonymous)
        elif kind == "declaration_list":
            yield from _functions(child, file, macros, c_linkage, certain, local)
        elif kind in ("declaration", "function_definition"):
            function = _function(child, file, macros, c_linkage, certain, local)
            if function:
                yield function


def _function(node: Any, file: str, macros: set[str], c_linkage: bool, certain: bool, local: bool) -> Function | None:
    declarator, depth, reference = node.child_by_field_name("declarator"), 0, False
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        depth += declarator.type == "pointer_declarator"
        reference = reference or declarator.type == "reference_declarator"
        declarator = declarator.child_by_field_name("declarator") or declarator.children[-1]
    if declarator is None or declarator.type != "function_declarator":
        return None
    name_node = declarator.child_by_field_name("declarator")
    type_node = node.child_by_field_name("type")
    if name_node is None or type_node is None or name_node.type not in ("identifier", "qualified_identifier"):
        return None
    name = _text(name_node).split("::")[-1]
    head = node.text[: declarator.start_byte - node.start_byte].decode("utf-8", "replace")
    words = set(re.findall(r"\w+", head))
    # Weak symbols may be defined twice.
    local = local or bool(
        words & {"static", "inline", "__global__", "__device__", "weak", "constexpr", "__forceinline__"}
    )
    parameters = []
    variadic = False
    for child in declarator.child_by_field_name("parameters").children:
        if child.type in ("parameter_declaration", "optional_parameter_declaration"):
            parameters.append(_parameter(child, macros))
        elif child.type in ("...", "variadic_parameter_declaration"):
            variadic = True
    if len(parameters) == 1 and parameters[0].type == Type("void", 0, False, True):
        parameters = []
    body = node.child_by_field_name("body")
    defined = node.type == "function_definition" or body is not None
    broken = any(child.type == "ERROR" or child.is_missing for child in (*node.children, *declarator.children))
    broken = broken or declarator.has_error or _after_error(node)
    # A macro may hold any number of parameters.
    listed = set(re.findall(r"\w+", _text(declarator.child_by_field_name("parameters"))))
    broken = broken or bool(listed & macros) or any(each.opaque for each in parameters)
    return Function(
        name=name,
        file=file,
        line=name_node.start_point[0] + 1,
        c_linkage=c_linkage,
        defined=defined,
        certain=certain and not broken and not variadic and name not in macros,
        local=local,
        returns=Parameter(_returned(head), _resolved(_base(type_node), depth, reference, macros)),
        parameters=tuple(parameters),
    )


def _returned(head: str) -> str:
    kept = re.sub(r'extern\s*("C")?|__attribute__\s*\(\(.*?\)\)|\b(static|inline|__host__)\b', " ", head)
    return " ".join(kept.split()).replace(" *", "*")


def _after_error(node: Any) -> bool:
    """Whether what stands right before was not understood: it may belong here (`EXPORT extern "C" ...`)."""
    previous = (node.parent if node.parent and node.parent.type == "linkage_specification" else node).prev_sibling
    for _ in range(2):
        if previous is None:
            return False
        if previous.type == "ERROR" or (previous.type == "expression_statement" and previous.has_error):
            return True
        previous = previous.prev_sibling
    return False


def _base(type_node: Any) -> str:
    if type_node.type in ("struct_specifier", "enum_specifier", "class_specifier", "union_specifier"):
        name = type_node.child_by_field_name("name")
        return _text(name) if name is not None else _text(type_node)
    return _text(type_node)


def _parameter(node: Any, macros: set[str]) -> Parameter:
    depth, reference, plain = 0, False, True
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        kind = declarator.type
        if kind in (
            "pointer_declarator",
            "abstract_pointer_declarator",
            "array_declarator",
            "abstract_array_declarator",
        ):
            depth += 1
        elif kind in ("reference_declarator", "abstract_reference_declarator"):
            reference = True
        elif kind not in ("identifier", "attributed_declarator"):
            plain = False  # a function pointer or the like
            break
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            named = [child for child in declarator.named_children if child.type.endswith("declarator")]
            inner = named[0] if named else None
        declarator = inner
    type_node = node.child_by_field_name("type")
    default = node.child_by_field_name("default_value")
    text = _text(node)
    if default is not None:
        text = text.rsplit("=", 1)[0].strip()
    resolved = _resolved(_base(type_node) if type_node is not None else "", depth, reference, macros)
    bare = node.child_by_field_name("declarator") is None and not resolved.sure
    return Parameter(text, resolved if plain else Type(resolved.base, depth, reference, False), opaque=bare)


def _resolved(base: str, depth: int, reference: bool, macros: set[str]) -> Type:
    name = base.removeprefix("std::").removeprefix("::")
    words = name.split()
    if words and all(word in ("unsigned", "signed", "long", "short", "int", "char") for word in words):
        sign = "unsigned " if "unsigned" in words else ""
        core = " ".join(word for word in words if word in ("long", "short", "char")) or "int"
        name = (sign + core) if core != "int" or not sign else "unsigned"
        if core == "char" and "signed" in words:
            name = "signed char"
    if name in _OPAQUE_POINTERS:
        name, depth = _OPAQUE_POINTERS[name], depth + 1
    name = _SAME.get(name, name)
    return Type(name, depth, reference, (name in _KNOWN or name == "cudaError_t") and base not in macros)


def types_differ(a: Type, b: Type) -> bool:
    """Whether two types are certainly not the same; pointers that are passed alike on purpose are the same."""
    if (a.base, a.depth, a.reference) == (b.base, b.depth, b.reference):
        return False
    if not (a.sure and b.sure):
        return False
    bases = {a.base, b.base}
    if a.depth and b.depth and not a.reference and not b.reference:
        # void* for a type whose header the other side does without; raw 16-bit words for half precision
        if "void" in bases:
            return False
        if a.depth == b.depth and bases in ({"u16", "half"}, {"u16", "bf16"}):
            return False
    # An error code returned as int
    return not (not a.depth and not b.depth and bases == {"i32", "cudaError_t"})


@dataclass(frozen=True)
class Mismatch:
    """Two sides of one launcher that differ, and how, in words."""

    declared: Function
    defined: Function
    difference: str


def mismatches(functions: Iterable[Function]) -> list[Mismatch]:
    """Declarations with C linkage that certainly differ from the definition of that name in another file."""
    everything = [each for each in functions if each.c_linkage and each.certain and not each.local]
    definitions = [each for each in everything if each.defined]
    found = []
    for declared in everything:
        if declared.defined:
            continue
        for defined in definitions:
            if defined.name == declared.name and defined.file != declared.file:
                difference = _difference(declared, defined)
                if difference:
                    found.append(Mismatch(declared, defined, difference))
    return found


def _difference(declared: Function, defined: Function) -> str:
    ours, theirs = declared.parameters, defined.parameters
    for number, (a, b) in enumerate(zip(ours, theirs, strict=False), 1):
        if types_differ(a.type, b.type):
            return f"parameter {number} is `{a.text}` in the declaration and `{b.text}` in the definition"
    if len(ours) != len(theirs):
        longer = ours if len(ours) > len(theirs) else theirs
        side = "declaration" if len(ours) > len(theirs) else "definition"
        extra = longer[min(len(ours), len(theirs))].text
        return (
            f"the declaration has {len(ours)} parameters, the definition {len(theirs)}; only the {side} has `{extra}`"
        )
    if types_differ(declared.returns.type, defined.returns.type):
        return f"the declaration returns `{declared.returns.text}`, the definition `{defined.returns.text}`"
    return ""


def duplicate_definitions(functions: Iterable[Function]) -> list[tuple[Function, Function]]:
    """Pairs of certain definitions of one C name in two files: the linker takes only one."""
    first: dict[str, Function] = {}
    pairs = []
    for each in functions:
        if each.defined and each.c_linkage and each.certain and not each.local:
            if each.name not in first:
                first[each.name] = each
            elif first[each.name].file != each.file:
                pairs.append((first[each.name], each))
    return pairs
