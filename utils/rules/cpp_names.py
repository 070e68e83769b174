"""What the names of one C++ source stand for, as far as rules ask: tensors, views, namespaces, macros."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from utils.rules.cpp_source import text
from utils.rules.python_values import is_compute
from utils.rules.torch_names import CREATE, VIEW

_TENSOR_TYPE = re.compile(
    r"^(const\s+)?(torch::|at::|::at::|::torch::)?Tensor\b(?!\s*(List|Options|Iterator|Accessor))"
)
_MANY_TENSORS = re.compile(r"(vector|ArrayRef|tuple|array|pair|optional)\s*<.*\bTensor\b|TensorList")
_TURNING = {
    "t",
    "transpose",
    "permute",
    "swapaxes",
    "swapdims",
    "movedim",
    "moveaxis",
    "mT",
    "adjoint",
    "expand",
    "expand_as",
    "as_strided",
    "numpy_T",
}


@dataclass
class Names:
    """What is known of names in one source."""

    tensors: set[str] = field(default_factory=set)
    many: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    returning_tensor: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    opened: bool = False  # using namespace torch / at
    pasting: set[str] = field(default_factory=set)
    # Macros that stand for a name: `#define AT at`.
    macros: dict[str, str] = field(default_factory=dict)
    # Variables that hold objects of Python's.
    objects: set[str] = field(default_factory=set)

    def learn_file(self, node: Node) -> None:
        """What holds in the whole file: aliases, opened namespaces, macros, functions that return tensors."""
        if node.type == "namespace_alias_definition":
            parts = [child for child in node.children if child.is_named]
            if len(parts) == 2:
                self.aliases[text(parts[0])] = flat(text(parts[1]))
        elif node.type == "using_declaration" and "namespace" in text(node).split():
            if re.search(r"namespace\s+(::)?(torch|at)\b", text(node)):
                self.opened = True
        elif node.type == "preproc_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and re.fullmatch(r"(::)?\w+(\s*::\s*\w+)*", text(value).strip()):
                self.macros[text(name)] = flat(text(value).strip())
        elif node.type == "preproc_function_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and "##" in text(value):
                self.pasting.add(text(name))
        elif node.type in {"function_definition", "declaration"}:
            kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
            if kind is not None and declarator is not None and _TENSOR_TYPE.match(flat(text(kind))):
                function = _function_name(declarator)
                if function:
                    self.returning_tensor.add(function)

    def learn(self, node: Node) -> None:
        """What a declaration says of its names; good for the function that it stands in."""
        if node.type in {"parameter_declaration", "optional_parameter_declaration", "declaration", "for_range_loop"}:
            kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
            if kind is None:
                return
            said = flat(text(kind))
            for child in node.children_by_field_name("declarator"):
                name, value = declared(child)
                if name is None:
                    continue
                if _TENSOR_TYPE.match(said):
                    (self.pointers if _points(child) else self.tensors).add(name)
                elif _MANY_TENSORS.search(said):
                    (self.tensors if "optional" in said else self.many).add(name)
                elif said == "auto" and value is not None and self.is_tensor(value):
                    self.tensors.add(name)
                if value is not None and self.is_turned(value):
                    self.turned.add(name)
            if declarator is not None and node.type == "for_range_loop":
                loop = node.child_by_field_name("right")
                name, _ = declared(declarator)
                if name and loop is not None and text(loop) in self.many:
                    self.tensors.add(name)

    def is_tensor(self, node: Node) -> bool:
        match node.type:
            case "identifier":
                return text(node) in self.tensors
            case "parenthesized_expression":
                return any(self.is_tensor(child) for child in node.children if child.is_named)
            case "pointer_expression":
                inner = node.child_by_field_name("argument")
                starred = text(node).startswith("*")
                return inner is not None and starred and (text(inner) in self.pointers or self.is_tensor(inner))
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
                return inner is not None and (text(inner) in self.many or self.is_tensor(inner))
            case "call_expression":
                return self._call_gives_tensor(node)
            case "binary_expression":
                sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
                return any(side is not None and self.is_tensor(side) for side in sides)
            case "conditional_expression":
                part = node.child_by_field_name("consequence")
                return part is not None and self.is_tensor(part)
            case _:
                return False

    def _call_gives_tensor(self, node: Node) -> bool:
        function = node.child_by_field_name("function")
        if function is None:
            return False
        if function.type == "field_expression":
            owner, name = field_of(function)
            if owner is None or not (self.is_tensor(owner) or text(owner) in self.pointers):
                return False
            return (
                name in VIEW
                or name in CREATE
                or is_compute(name)
                or name in {"contiguous", "to", "cuda", "cpu", "value"}
            )
        parts = self.parts(function)
        if parts[0] in {"torch", "at"}:
            last = parts[-1] if parts[-1] != "call" else parts[-2]
            return last in CREATE or last in VIEW or last == "from_blob" or is_compute(last) or "_ops" in parts
        if parts == ["std", "move"]:
            arguments = node.child_by_field_name("arguments")
            return arguments is not None and any(self.is_tensor(child) for child in arguments.children)
        return parts[-1] in self.returning_tensor

    def is_turned(self, node: Node) -> bool:
        """Whether the expression is a view that permutes memory."""
        if node.type == "identifier":
            return text(node) in self.turned
        if node.type != "call_expression":
            return False
        function = node.child_by_field_name("function")
        if function is None or function.type != "field_expression":
            return (
                function is not None
                and self.parts(function)[-1] in _TURNING
                and self.parts(function)[0] in {"torch", "at"}
            )
        owner, name = field_of(function)
        return name in _TURNING or (owner is not None and name in VIEW and self.is_turned(owner))

    def parts(self, node: Node) -> list[str]:
        """A possibly qualified name as its parts, aliases of namespaces resolved."""
        name = re.sub(r"<.*>", "", flat(text(node)))
        parts = [inner for part in name.split("::") if part for inner in self.unmacro(part).split("::") if inner]
        if parts and parts[0] in self.aliases:
            parts = self.aliases[parts[0]].split("::") + parts[1:]
        return parts or [""]

    def unmacro(self, name: str) -> str:
        """What a macro that stands for a name stands for, in the end; other names as they are."""
        for _ in range(8):
            if name not in self.macros:
                break
            name = self.macros[name]
        return name


def flat(said: str) -> str:
    return re.sub(r"\s*(::|<|>|,|&|\*)\s*", r"\1", " ".join(said.split()))


def field_of(node: Node) -> tuple[Node | None, str]:
    """(object, method name) of `object.method` or `object->method`."""
    name = node.child_by_field_name("field")
    if name is not None and name.type == "template_method":
        name = name.child_by_field_name("name")
    return node.child_by_field_name("argument"), text(name) if name is not None else ""


def declared(node: Node) -> tuple[str | None, Node | None]:
    """The name a declarator declares, and its initial value."""
    value = None
    while node is not None and node.type not in {"identifier", "field_identifier"}:
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
        following = node.child_by_field_name("declarator")
        if following is None:
            following = next(
                (
                    c
                    for c in node.children
                    if c.type in {"identifier", "field_identifier", "pointer_declarator", "reference_declarator"}
                ),
                None,
            )
        if following is None:
            return None, value
        node = following
    return text(node), value


def _points(declarator: Node) -> bool:
    """Whether a declarator declares a pointer."""
    node: Node | None = declarator
    while node is not None:
        if node.type == "pointer_declarator":
            return True
        node = node.child_by_field_name("declarator")
    return False


def _function_name(node: Node) -> str | None:
    while node is not None and node.type != "function_declarator":
        following = node.child_by_field_name("declarator")
        if following is None:
            following = next((c for c in node.children if c.type.endswith("declarator")), None)
        if following is None:
            return None
        node = following
    name = node.child_by_field_name("declarator")
    return text(name).split("::")[-1] if name is not None else None


def inside(node: Node, kinds: set[str]) -> bool:
    above = node.parent
    while above is not None:
        if above.type in kinds:
            return True
        above = above.parent
    return False
