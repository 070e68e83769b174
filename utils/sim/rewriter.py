"""Turns CUDA C++ into C++ for the simulator, line for line.

    kernel<A><<<g, b, s, t>>>(x)    ->  ::sim::launcher("kernel<A>", [&](auto&&... a) { kernel<A>(a...); }, g, ...)(x)
    __shared__ float s[32][33];     ->  a reference into the block's shared memory, one site per declaration
    extern __shared__ float s[];    ->  a reference to the block's dynamic shared memory
    asm("...")                      ->  what its PTX does (utils/sim/ptx.py), or a stop that names it
    __launch_bounds__(n)            ->  checked as the kernel starts; __cluster_dims__ likewise
    while (*flag == 0) {}           ->  lets the other threads run

Everything else is left alone: nvcc's other keywords are macros of the simulator's headers. Edits keep every newline,
and each file starts with #line, so that errors, debuggers and findings point at the user's file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from utils.present.outcome import CannotTell
from utils.sim import ptx
from utils.sim.syntax import parse, walk, without_comments_and_strings

_LAUNCHERS = {
    "cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cudaFuncSetAttribute",
    "cudaFuncGetAttributes",
    "cudaFuncSetCacheConfig",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cudaOccupancyMaxActiveClusters",
    "cudaOccupancyMaxPotentialClusterSize",
}
_VOID_POINTER = re.compile(rb"\(\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*\)")
_LEFT = re.compile(rb"\b__shared__\b|<<<|\basm\b\s*(?:(?:volatile|__volatile__|goto)\s*)?\(")
_WORTH_REPARSING = re.compile(rb"<<<|__shared__|\basm\b")


@dataclass
class Kernels:
    """The `__global__` functions of a workspace: by name, the number of template parameters of each definition."""

    parameters: dict[str, list[int]] = field(default_factory=dict)

    def scan(self, source: bytes) -> None:
        for node in walk(parse(source)):
            if node.type != "function_definition" or not any(child.type == "__global__" for child in node.children):
                continue
            name = _function_name(node)
            template = node.parent if node.parent is not None and node.parent.type == "template_declaration" else None
            count = 0
            if template is not None:
                listed = template.child_by_field_name("parameters")
                count = len(listed.named_children) if listed is not None else 0
                if listed is not None and any(child.type.startswith("variadic") for child in listed.named_children):
                    count = -1
            if name:
                self.parameters.setdefault(name, []).append(count)

    def names_one(self, name: str, arguments: int) -> bool:
        """Whether `name` with that many explicit template arguments names exactly one function."""
        known = self.parameters.get(name)
        if known is None:
            return True  # a variable, a parameter
        return len(set(known)) == 1 and len(known) <= 1 and known[0] == arguments


@dataclass
class _Edits:
    source: bytes
    items: list[tuple[int, int, bytes]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: bytes | str) -> None:
        self.items.append((start, end, text.encode() if isinstance(text, str) else text))

    def insert(self, at: int, text: bytes | str) -> None:
        self.replace(at, at, text)

    def apply(self) -> bytes:
        out, last = [], 0
        # At one place, insertions come in the order they were made.
        for start, end, text in sorted(self.items, key=lambda item: (item[0], item[1])):
            if start < last:
                continue  # inside something replaced whole
            out += [self.source[last:start], text]
            last = end
        return b"".join([*out, self.source[last:]])


def _text(source: bytes, node: Node) -> bytes:
    return source[node.start_byte : node.end_byte]


def _one_line(text: bytes) -> bytes:
    return re.sub(rb"\s+", b" ", re.sub(rb"\\\n", b" ", text)).strip()


def _quoted(text: bytes) -> bytes:
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _function_name(definition: Node) -> str | None:
    declarator = definition.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("identifier", "qualified_identifier", "field_identifier"):
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None or declarator.text is None:
        return None
    return declarator.text.decode(errors="replace").split("::")[-1]


class _Rewrite:
    """One pass over one text: a file, the body of a macro (whose newlines are escaped), or statements on their own."""

    def __init__(
        self, source: bytes, path: str, kernels: Kernels, first_line: int, macro: bool, statements: bool = False
    ):
        self.source, self.path, self.kernels = source, path, kernels
        self.first_line, self.macro, self.statements = first_line, macro, statements or macro
        self.parameters: set[bytes] = set()
        self.edits = _Edits(source)
        self.launches = 0

    def line(self, node: Node) -> int:
        return self.first_line + self.source.count(b"\n", 0, node.start_byte)

    def newlines(self, text: bytes) -> bytes:
        return (b"\\\n" if self.macro else b"\n") * text.count(b"\n")

    def run(self) -> bytes:
        text = self.source
        if self.macro:
            # The grammar must see whitespace where the macro continues; places stay true.
            text = text.replace(b"\\\n", b" \n")
            # a##b is one name.
            text = re.sub(rb"(?<=\w)##(?=\w)", b"__", text)
        offset = 0
        if not self.statements:
            text = _without_macro_calls(text)
        else:
            prefix = b"void sim_macro() { "
            text, offset = prefix + text + b"; }", len(prefix)
        root = parse(text)
        self.offset = offset
        self.clusters()
        for node in walk(root):
            self.visit(node)
        return self.edits.apply()

    # Byte places of the tree, in self.source.
    def span(self, node: Node) -> tuple[int, int]:
        return node.start_byte - self.offset, node.end_byte - self.offset

    def text(self, node: Node) -> bytes:
        start, end = self.span(node)
        return self.source[max(start, 0) : end]

    def visit(self, node: Node) -> None:
        kind = node.type
        if kind == "kernel_call_syntax":
            self.launch(node)
        elif kind in ("declaration", "field_declaration"):
            if any(c.type == "type_qualifier" and self.text(c) == b"__shared__" for c in node.children):
                self.shared(node)
        elif kind == "gnu_asm_expression":
            self.asm(node)
        elif kind == "function_definition":
            self.kernel(node)
        elif kind in ("while_statement", "for_statement", "do_statement"):
            self.loop(node)
        elif kind == "call_expression":
            self.call(node)
        elif kind in ("preproc_def", "preproc_function_def") and not self.macro:
            self.define(node)

    def launch(self, node: Node) -> None:
        call = node.parent
        function = call.child_by_field_name("function") if call is not None else None
        arguments = call.child_by_field_name("arguments") if call is not None else None
        if call is None or function is None or arguments is None or call.type != "call_expression":
            return
        self.launches += 1
        name = _one_line(self.text(function))
        base = re.sub(rb"<.*", b"", name, flags=re.S).split(b"::")[-1].strip().decode(errors="replace")
        explicit = 0
        for each in walk(function):
            if each.type == "template_argument_list":
                explicit = len(each.named_children)
                break
        # A name made of a macro's parameters may be any function's, overloads included.
        made_up = any(part in self.parameters for part in re.findall(rb"\w+", name))
        address = (
            b"(const void*)(" + name + b")" if self.kernels.names_one(base, explicit) and not made_up else b"nullptr"
        )
        start, end = self.span(function)
        zeros = False
        for argument in arguments.named_children:
            text = self.text(argument)
            if (argument.type == "number_literal" and text == b"0") or text == b"NULL":
                self.edits.replace(*self.span(argument), "::sim::LiteralZero{}")
                zeros = True
            elif argument.type == "initializer_list" and not argument.named_children:
                self.edits.replace(*self.span(argument), "::sim::LiteralEmpty{}")
        returns = b" -> decltype(" + name + b"(sim_a...))" if zeros else b""
        self.edits.insert(
            start,
            b"::sim::launcher("
            + self.spelled(name)
            + b", __FILE__, __LINE__, "
            + address
            + b", [&](auto&&... sim_a)"
            + returns
            + b" { ",
        )
        self.edits.insert(end, "(sim_a...); }")
        for child in node.children:
            if child.type == "<<<":
                self.edits.replace(*self.span(child), ", ")
            elif child.type == ">>>":
                self.edits.replace(*self.span(child), ")")

    def spelled(self, name: bytes) -> bytes:
        """`name` as a string literal; in a macro, its parameters as what they stand for."""
        if not self.parameters:
            return _quoted(name)
        parts = re.split(rb"(\w+)", name)
        return b" ".join(b"#" + part if part in self.parameters else _quoted(part) for part in parts if part != b"##")

    def shared(self, node: Node) -> None:
        text = self.text(node)
        declarators = [c for i, c in enumerate(node.children) if node.field_name_for_child(i) == "declarator"]
        type_node = node.child_by_field_name("type")
        if type_node is None or not declarators:
            return
        dynamic = any(c.type == "storage_class_specifier" and self.text(c) == b"extern" for c in node.children)
        qualifiers = b"".join(
            self.text(c) + b" "
            for c in node.children
            if c.type == "type_qualifier" and self.text(c) in (b"volatile", b"const")
        )
        if any(child.type == "ERROR" for child in walk(node)):
            raise CannotTell(
                f"{self.path}:{self.line(node)}: the simulator does not understand this __shared__ declaration; "
                "write it as "
                "`__shared__ type name[size];`"
            )
        local = self.statements or _inside_function(self.source[: self.span(node)[0]])
        out = b""
        for declarator in declarators:
            inner = declarator
            while inner.type not in ("identifier", "field_identifier"):
                below = inner.child_by_field_name("declarator") or next((c for c in inner.named_children), None)
                if below is None:
                    return
                inner = below
            name = self.text(inner)
            d0, _ = self.span(declarator)
            whole = self.text(declarator)
            if declarator.type == "init_declarator":
                return  # not CUDA; the compiler will say so
            i0, i1 = self.span(inner)
            alias = b"sim_T_" + name
            shape = whole[: i0 - d0] + alias + whole[i1 - d0 :]
            out += b"typedef " + qualifiers + self.text(type_node) + b" " + _one_line(shape) + b"; "
            if dynamic:
                value = b"*reinterpret_cast<" + alias + b"*>(::sim::dynamic_shared());"
            else:
                site = (
                    b"static ::sim::SharedSite sim_site_"
                    + name
                    + b"{sizeof("
                    + alias
                    + b"), "
                    + _quoted(name)
                    + b", __FILE__, __LINE__, 0, 0, 0}; "
                )
                value = (
                    b"*static_cast<"
                    + alias
                    + b"*>(const_cast<void*>(static_cast<const volatile void*>(::sim::shared(sim_site_"
                    + name
                    + b"))));"
                )
                if local:
                    out += site
            if local:
                out += b"[[maybe_unused]] " + alias + b"& " + name + b" = " + value + b" "
            else:
                out += (
                    b"static inline "
                    + alias
                    + b"& sim_get_"
                    + name
                    + b"() { "
                    + (b"" if dynamic else site)
                    + b"return "
                    + value
                    + b" }"
                )
                line = self.line(node) + text.count(b"\n")
                out += (
                    b"\n#define "
                    + name
                    + b" (sim_get_"
                    + name
                    + b"())\n#line "
                    + str(line).encode()
                    + b" "
                    + _quoted(self.path.encode())
                    + b"\n"
                )
        self.edits.replace(*self.span(node), out + (self.newlines(text) if local else b""))

    def asm(self, node: Node) -> None:
        template = node.child_by_field_name("assembly_code")
        if template is None:
            return
        code = _literal(self.text(template))
        outputs: list[ptx.Operand] = []
        inputs: list[ptx.Operand] = []
        for list_name, found in (("output_operands", outputs), ("input_operands", inputs)):
            listed = node.child_by_field_name(list_name)
            for operand in listed.named_children if listed is not None else []:
                constraint, value = operand.child_by_field_name("constraint"), operand.child_by_field_name("value")
                symbol = operand.child_by_field_name("symbol")
                if constraint is not None and value is not None:
                    found.append(
                        ptx.Operand(
                            (_literal(self.text(constraint)) or b"?").decode(),
                            _one_line(self.text(value)).decode(errors="replace"),
                            self.text(symbol).decode() if symbol is not None else "",
                        )
                    )
        if code is None:
            statement = ptx.unsupported("inline PTX whose text is made by macros")
        else:
            statement = ptx.translate(code.decode(errors="replace"), outputs, inputs)
        self.edits.replace(*self.span(node), statement.encode() + self.newlines(self.text(node)))

    def kernel(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            return
        start, _ = self.span(body)
        checks = ""
        for child in walk(node):
            if child.start_byte >= body.start_byte:
                break
            if child.type == "launch_bounds" and child.named_children:
                checks += f" ::sim::launch_bounds({_one_line(self.text(child.named_children[0])).decode()});"
        if checks:
            self.edits.insert(start + 1, checks)

    def clusters(self) -> None:
        """First of all a kernel says which cluster it is for. By the text: macros make such kernels too."""
        bare = without_comments_and_strings(self.source)
        for match in re.finditer(rb"\b__cluster_dims__\s*\(([^()]*)\)", bare):
            depth = 0
            for at in range(match.end(), len(bare)):
                depth += (bare[at] in b"([") - (bare[at] in b")]")
                if depth == 0 and bare[at] in b"{;":
                    break
            else:
                continue
            if bare[at] == ord("{"):
                dims = [part.strip() for part in _one_line(match[1]).split(b",")]
                words = b", ".join([*dims, b"1", b"1"][:3])
                self.edits.insert(at + 1, b" ::sim::kernel_cluster(" + words + b", __FILE__, __LINE__);")

    def loop(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        if body is None and node.children:
            body = node.children[-1]
        if body is None:
            return
        text = self.text(body).strip()
        start, end = self.span(body)
        if body.type == "compound_statement" and not body.named_children:
            self.edits.insert(start + 1, " ::sim::breathe(); ")
        elif text == b";":
            self.edits.replace(start, end, "{ ::sim::breathe(); }")

    def call(self, node: Node) -> None:
        """`(void*)kernel` keeps its type where the runtime API is given a kernel."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None or not arguments.named_children:
            return
        if self.text(function).split(b"::")[-1].decode(errors="replace") not in _LAUNCHERS:
            return
        for argument in arguments.named_children[:2]:
            start, _ = self.span(argument)
            match = _VOID_POINTER.match(self.text(argument))
            if argument.type == "cast_expression" and match:
                self.edits.replace(start, start + match.end(), b"")
            elif re.match(
                rb"reinterpret_cast\s*<\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*>\s*(?=\()", self.text(argument)
            ):
                match = re.match(rb"reinterpret_cast\s*<[^>]*>\s*(?=\()", self.text(argument))
                assert match is not None
                self.edits.replace(start, start + match.end(), b"")

    def define(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is None or not _WORTH_REPARSING.search(self.text(value)):
            return
        body = _Rewrite(self.text(value), self.path, self.kernels, self.line(node), macro=True)
        listed = node.child_by_field_name("parameters")
        body.parameters = {self.text(each) for each in listed.named_children} if listed is not None else set()
        self.edits.replace(*self.span(value), body.run())
        self.launches += body.launches


def _inside_function(before: bytes) -> bool:
    """Whether text that begins with `before` goes on inside a function, or in the arguments of a macro that makes one.

    By brackets, not by the tree: around macros that make functions the tree is a guess.
    """
    bare = without_comments_and_strings(re.sub(rb"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", b"", before, flags=re.M))
    open_at: list[int] = []
    for at, byte in enumerate(bare):
        if byte in b"{(":
            open_at.append(at)
        elif byte in b"})" and open_at:
            open_at.pop()
    return any(not re.search(rb"(?:\bnamespace\b[\w\s:]*|\bextern\s*)$", bare[:at]) for at in open_at)


def _literal(text: bytes) -> bytes | None:
    """The contents of one or several adjacent string literals; None where something else stands between them."""
    out, rest = b"", text.strip()
    while rest:
        raw = re.match(rb'R"([^()\\\s]{0,16})\((.*?)\)\1"', rest, re.S)
        plain = re.match(rb'"((?:\\.|[^"\\])*)"', rest, re.S)
        if raw:
            out += raw[2]
            rest = rest[raw.end() :].lstrip()
        elif plain:
            out += re.sub(
                rb"\\(.)", lambda m: {b"n": b"\n", b"t": b"\t", b"r": b""}.get(m[1], m[1]), plain[1], flags=re.S
            )
            rest = rest[plain.end() :].lstrip()
        elif rest.startswith(b"//") and b"\n" in rest:
            rest = rest.split(b"\n", 1)[1].lstrip()
        elif rest.startswith(b"\\\n"):  # a macro's next line
            rest = rest[2:].lstrip()
        else:
            return None
    return out


def rewrite(source: bytes, path: Path | str, kernels: Kernels) -> bytes:
    """The simulator's version of one file. Raises CannotTell, naming the line, for a launch it does not understand."""
    pass_ = _Rewrite(source, str(path), kernels, 1, macro=False)
    out = pass_.run()
    out = _rest(out, str(path), kernels)
    return b"#line 1 " + _quoted(str(path).encode()) + b"\n" + out


def _without_macro_calls(text: bytes) -> bytes:
    """`text` with file-level macro calls blanked that hold statements or end without a semicolon: the grammar cannot
    read them, and would misread what follows. `_rest` looks into them."""
    bare = without_comments_and_strings(text)
    for match in re.finditer(rb"^[A-Za-z_]\w*[ \t]*\(", bare, re.M):
        end = _closing(bare, match.end() - 1)
        after = bare[end:].lstrip()[:1] if end else b"{"
        if after not in (b"{", b":", b";", b",", b"=", b")") or (after != b"{" and b";" in bare[match.end() : end]):
            text = text[: match.start()] + re.sub(rb"[^\n]", b" ", text[match.start() : end]) + text[end:]
    return text


def _rest(text: bytes, path: str, kernels: Kernels) -> bytes:
    """What the tree of the whole file did not show: statements in the arguments of a macro that makes functions."""
    done = 0
    while True:
        bare = without_comments_and_strings(text)
        found = _LEFT.search(bare, done)
        if found is None:
            return text
        start = found.start()
        if found[0].startswith(b"asm"):
            end = _closing(bare, found.end() - 1)
        else:
            # Back to where the statement begins; names of kernels may have template arguments, with commas.
            stops = b";{}(," if found[0] == b"__shared__" else b";{}"
            while start > 0 and bare[start - 1] not in stops:
                start -= 1
            end = bare.find(b";", found.end()) + 1
        line = text.count(b"\n", 0, found.start()) + 1
        piece = _Rewrite(text[start:end], path, kernels, text.count(b"\n", 0, start) + 1, macro=False, statements=True)
        changed = piece.run() if end > start else b""
        if not changed or _LEFT.search(without_comments_and_strings(changed)):
            what = "kernel launch; write it as kernel<<<grid, block, shared, stream>>>(...)"
            if found[0] == b"__shared__":
                what = "__shared__ declaration; write it as `__shared__ type name[size];`"
            elif found[0].startswith(b"asm"):
                what = "asm statement"
            raise CannotTell(f"{path}:{line}: the simulator does not understand this {what}")
        text = text[:start] + changed + text[end:]
        done = start + len(changed)


def _closing(text: bytes, opening: int) -> int:
    """The place after the parenthesis that closes the one at `opening`; 0 where there is none."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {40: 1, 41: -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return 0


def scan(files: Iterable[Path]) -> Kernels:
    """The `__global__` functions in `files`."""
    kernels = Kernels()
    for file in files:
        source = file.read_bytes()
        if b"__global__" in source:
            kernels.scan(source)
    return kernels
