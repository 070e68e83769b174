"""Torch compute in C++, found in the syntax tree: functions, tensor methods, operators, and ways around their names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from utils.rules.allowed_ops import AT_OPS
from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_values import base, is_compute
from utils.rules.rule import Violation, rule
from utils.rules.torch_names import CREATE, VIEW

CPP_COMPUTE = rule(
    "cpp-compute",
    "C++ may make and view tensors; every computation is a kernel of your own, cuBLAS GEMM or cuDNN convolution",
    "syntax tree of kernels/ and of inline sources: torch:: and at:: functions, tensor methods, operators on tensors",
    "write a kernel for it in a .cu file and call its launcher from the binding",
)
CPP_CPU = rule(
    "cpp-cpu",
    "tensors stay on the device: no .cpu() or .to(kCPU) in C++",
    "syntax tree",
    "compute on the device; pass sizes and scalars as arguments",
)
CPP_HIDDEN = rule(
    "cpp-hidden",
    "what C++ calls can be read in its source",
    "syntax tree: names pasted by macros, calls back into Python, the dispatcher by name, dlopen",
    "call the function by its name, or do without it",
)

_NAMESPACES = {"linalg", "fft", "special", "sparse", "nested", "_VF"}
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
# Names that containers, strings, numbers and CUDA fragments share with tensors.
_SHARED = {
    "add",
    "index",
    "sort",
    "fill",
    "copy",
    "max",
    "min",
    "sum",
    "map",
    "all",
    "any",
    "put",
    "mode",
    "round",
    "x",
    "ne",
    "eq",
    "count",
    "take",
    "unique",
    "select",
    "split",
    "mul",
    "sub",
    "div",
    "log",
    "pow",
    "int",
    "float",
    "half",
    "bool",
    "long",
    "norm",
    "diff",
    "cat",
}
_DTYPES = re.compile(
    r"\bk(Float|Double|Half|BFloat16|Int|Long|Short|Char|Byte|Bool|Float16|Float32|Float64|Int8|Int16|Int32|Int64|UInt8|Float8\w*)\b|\bat::ScalarType::|\btorch::ScalarType::|\.dtype\(\)|scalar_type\(\)"
)
_PYTHON_CALLS = re.compile(
    r"^_?Py(Run_|Eval_(?!SaveThread|RestoreThread|ThreadsInitialized)|Import|Number_|Sequence_|Sys_Get|Mapping_|Frame_|Gen_|CFunction_Call|"
    r"Object_(Call|GetAttr|GenericGetAttr|Vectorcall|RichCompare|GetItem|SetItem|GetIter|Str|Repr))\w*$"
)
_PYTHON_OBJECT = re.compile(r"^(const )?(py|pybind11)::(function|object|handle|cpp_function)\b")
_LOADERS = {"dlopen", "dlsym", "dlmopen", "system", "popen", "fork", "execv", "execve", "execvp", "posix_spawn"}
_ARITHMETIC = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!="}
_ASSIGNING = {"+=", "-=", "*=", "/=", "&=", "|=", "^="}


@dataclass
class _Names:
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


def cpp_compute_violations(source: CppSource) -> list[Violation]:
    """Breaches of the three rules in one source. A source that cannot see torch has no tensors to judge."""
    reader = _Reader(source)
    reader.read()
    return reader.found


class _Reader:
    def __init__(self, source: CppSource) -> None:
        self.source = source
        self.names = _Names()
        self.found: list[Violation] = []
        self.said: set[tuple[str, int]] = set()

    def read(self) -> None:
        for node in walk(self.source.root):
            self._learn_file(node)
        self._hidden()
        if not self.source.sees_torch:
            return
        # Top-level names first, then each function with names of its own.
        for node in walk(self.source.root):
            if node.type in {"function_definition", "lambda_expression"} and not _inside(
                node, {"function_definition", "lambda_expression"}
            ):
                self._function(node)
        for node in walk(self.source.root):
            if not _inside(node, {"function_definition"}):
                self._node(node)

    def _function(self, node: Node) -> None:
        names = self.names
        outer = (set(names.tensors), set(names.many), set(names.turned), set(names.pointers))
        for inner in walk(node):
            self._learn(inner)
        for inner in walk(node):
            self._node(inner)
        names.tensors, names.many, names.turned, names.pointers = outer

    # -- learning names ------------------------------------------------------------------------------------------

    def _learn_file(self, node: Node) -> None:
        if node.type == "namespace_alias_definition":
            parts = [child for child in node.children if child.is_named]
            if len(parts) == 2:
                self.names.aliases[text(parts[0])] = _flat(text(parts[1]))
        elif node.type == "using_declaration" and "namespace" in text(node).split():
            if re.search(r"namespace\s+(::)?(torch|at)\b", text(node)):
                self.names.opened = True
        elif node.type == "preproc_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and re.fullmatch(r"(::)?\w+(\s*::\s*\w+)*", text(value).strip()):
                self.names.macros[text(name)] = _flat(text(value).strip())
        elif node.type == "preproc_function_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and "##" in text(value):
                self.names.pasting.add(text(name))
        elif node.type in {"function_definition", "declaration"}:
            kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
            if kind is not None and declarator is not None and _TENSOR_TYPE.match(_flat(text(kind))):
                function = _function_name(declarator)
                if function:
                    self.names.returning_tensor.add(function)

    def _learn(self, node: Node) -> None:
        if node.type in {"parameter_declaration", "optional_parameter_declaration", "declaration", "for_range_loop"}:
            kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
            if kind is None:
                return
            said = _flat(text(kind))
            for child in node.children_by_field_name("declarator"):
                name, value = _declared(child)
                if name is None:
                    continue
                if _TENSOR_TYPE.match(said):
                    (self.names.pointers if _points(child) else self.names.tensors).add(name)
                elif _MANY_TENSORS.search(said):
                    (self.names.tensors if "optional" in said else self.names.many).add(name)
                elif said == "auto" and value is not None and self.is_tensor(value):
                    self.names.tensors.add(name)
                if value is not None and self.is_turned(value):
                    self.names.turned.add(name)
            if declarator is not None and node.type == "for_range_loop":
                loop = node.child_by_field_name("right")
                name, _ = _declared(declarator)
                if name and loop is not None and text(loop) in self.names.many:
                    self.names.tensors.add(name)

    def is_tensor(self, node: Node) -> bool:
        match node.type:
            case "identifier":
                return text(node) in self.names.tensors
            case "parenthesized_expression":
                return any(self.is_tensor(child) for child in node.children if child.is_named)
            case "pointer_expression":
                inner = node.child_by_field_name("argument")
                starred = text(node).startswith("*")
                return inner is not None and starred and (text(inner) in self.names.pointers or self.is_tensor(inner))
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
                return inner is not None and (text(inner) in self.names.many or self.is_tensor(inner))
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
            owner, name = _field(function)
            if owner is None or not (self.is_tensor(owner) or text(owner) in self.names.pointers):
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
        return parts[-1] in self.names.returning_tensor

    def is_turned(self, node: Node) -> bool:
        """Whether the expression is a view that permutes memory."""
        if node.type == "identifier":
            return text(node) in self.names.turned
        if node.type != "call_expression":
            return False
        function = node.child_by_field_name("function")
        if function is None or function.type != "field_expression":
            return (
                function is not None
                and self.parts(function)[-1] in _TURNING
                and self.parts(function)[0] in {"torch", "at"}
            )
        owner, name = _field(function)
        return name in _TURNING or (owner is not None and name in VIEW and self.is_turned(owner))

    def parts(self, node: Node) -> list[str]:
        """A possibly qualified name as its parts, aliases of namespaces resolved."""
        name = re.sub(r"<.*>", "", _flat(text(node)))
        parts = [inner for part in name.split("::") if part for inner in self.unmacro(part).split("::") if inner]
        if parts and parts[0] in self.names.aliases:
            parts = self.names.aliases[parts[0]].split("::") + parts[1:]
        return parts or [""]

    def unmacro(self, name: str) -> str:
        """What a macro that stands for a name stands for, in the end; other names as they are."""
        for _ in range(8):
            if name not in self.names.macros:
                break
            name = self.names.macros[name]
        return name

    # -- judging -------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if node.type == "qualified_identifier" and (node.parent is None or node.parent.type != "qualified_identifier"):
            self._qualified(node)
        elif node.type == "call_expression":
            self._call(node)
        elif node.type == "binary_expression":
            self._operator(node)
        elif node.type in {"assignment_expression", "unary_expression", "update_expression"}:
            self._assigning(node)
        elif node.type in {"preproc_function_def", "preproc_def"}:
            self._macro(node)

    def _qualified(self, node: Node) -> None:
        parts = self.parts(node)
        if parts[0] not in {"torch", "at"} or len(parts) < 2:
            return
        if "template_type" in {child.type for child in node.children}:
            return
        name = _compute_name(parts)
        if name:
            self._report(CPP_COMPUTE.id, node, f"C++ calls {'::'.join(parts)}, compute of torch's")
        elif parts[-1] in self.names.pasting:
            self._report(
                CPP_HIDDEN.id, node, f"the name after {parts[0]}:: is pasted together by the macro {parts[-1]}"
            )

    def _call(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if function is None:
            return
        if function.type == "field_expression":
            owner, name = _field(function)
            if owner is None:
                return
            name = self.unmacro(name)
            tensor = self.is_tensor(owner) or text(owner) in self.names.pointers
            words = text(arguments) if arguments is not None else ""
            if name in self.names.pasting:
                self._report(CPP_HIDDEN.id, node, f"the method's name is pasted together by the macro {name}")
            elif name == "cpu" or (name == "to" and re.search(r"\bkCPU\b|DeviceType::CPU|\"cpu\"", words)):
                if tensor or name == "cpu":
                    self._report(CPP_CPU.id, node, "C++ moves a tensor to the CPU")
            elif name in {"contiguous", "reshape", "flatten"} and self.is_turned(owner):
                self._report(
                    CPP_COMPUTE.id, node, f"{name}() after a permuting view makes torch's copy kernel move the data"
                )
            elif name in {"to", "toType", "type"} and tensor and _DTYPES.search(words):
                self._report(CPP_COMPUTE.id, node, "C++ converts a tensor to another dtype with torch's kernel")
            elif is_compute(name) and (tensor or (base(name) not in _SHARED and self._could_be_tensor(owner))):
                self._report(CPP_COMPUTE.id, node, f"C++ calls the tensor method {name}, compute of torch's")
        elif function.type == "identifier" and self.names.opened and is_compute(text(function)):
            given = arguments.children if arguments is not None else []
            if any(self.is_tensor(child) for child in given):
                self._report(
                    CPP_COMPUTE.id, node, f"C++ calls {text(function)} of the namespace it opened, compute of torch's"
                )

    def _could_be_tensor(self, owner: Node) -> bool:
        """False for what plainly is none: std:: objects, numbers, CUDA types named in a declaration here."""
        return owner.type in {"call_expression", "subscript_expression"} or (
            owner.type == "identifier" and text(owner) not in self._other_names
        )

    @cached_property
    def _other_names(self) -> set[str]:
        """Names declared here with a type that is no tensor."""
        known: set[str] = set()
        for node in walk(self.source.root):
            if node.type in {"declaration", "parameter_declaration", "field_declaration"}:
                kind = node.child_by_field_name("type")
                if kind is None or "auto" in text(kind) or "Tensor" in text(kind):
                    continue
                for child in node.children_by_field_name("declarator"):
                    name, _ = _declared(child)
                    if name:
                        known.add(name)
        return known

    def _operator(self, node: Node) -> None:
        operator = node.child_by_field_name("operator")
        if operator is None or text(operator) not in _ARITHMETIC:
            return
        sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
        if any(side is not None and self.is_tensor(side) for side in sides):
            self._report(CPP_COMPUTE.id, node, f"C++ applies {text(operator)} to tensors, compute of torch's")
        elif text(operator) not in {"==", "!="} and any(_is_python_object(side) for side in sides):
            self._report(CPP_HIDDEN.id, node, f"C++ calls back into Python (operator {text(operator)})")

    def _assigning(self, node: Node) -> None:
        operator = node.child_by_field_name("operator")
        sign = text(operator) if operator is not None else ""
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if left is None:
            return
        if (sign in _ASSIGNING or (node.type == "unary_expression" and sign in {"-", "~"})) and self.is_tensor(left):
            self._report(CPP_COMPUTE.id, node, f"C++ applies {sign} to a tensor, compute of torch's")
        elif sign == "=" and left.type == "subscript_expression" and self.is_tensor(left):
            self._report(CPP_COMPUTE.id, node, "C++ assigns to a part of a tensor, a copy by torch's kernel")

    def _macro(self, node: Node) -> None:
        value, parameters = node.child_by_field_name("value"), node.child_by_field_name("parameters")
        if value is None:
            return
        body = text(value)
        given = set(re.findall(r"\w+", text(parameters))) if parameters is not None else set()
        spaces = {name for name in self.names.macros if self.unmacro(name) in {"torch", "at"}} | {"torch", "at"}
        for match in re.finditer(rf"\b({'|'.join(sorted(spaces))})\s*::\s*([\w:\s]+)", body):
            parts = [
                self.unmacro(match.group(1)),
                *[self.unmacro(part.strip()) for part in match.group(2).split("::") if part.strip()],
            ]
            if parts[-1] in given or "##" in body[match.start() :]:
                self._report(CPP_HIDDEN.id, node, f"a macro puts together what follows {parts[0]}::")
            elif _compute_name(parts):
                self._report(CPP_COMPUTE.id, node, f"a macro calls {'::'.join(parts)}, compute of torch's")
        for match in re.finditer(r"(?:\.|->)\s*(\w+)\s*\(", body):
            if is_compute(match.group(1)) and base(match.group(1)) not in _SHARED:
                self._report(CPP_COMPUTE.id, node, f"a macro calls the tensor method {match.group(1)}")

    def _hidden(self) -> None:
        for node in walk(self.source.root):
            if node.type in {"declaration", "parameter_declaration"}:
                kind = node.child_by_field_name("type")
                if kind is not None and _PYTHON_OBJECT.match(_flat(text(kind))):
                    for child in node.children_by_field_name("declarator"):
                        self.names.objects.add(_declared(child)[0] or "")
        for node in walk(self.source.root):
            if node.type != "call_expression":
                continue
            function = node.child_by_field_name("function")
            if function is None:
                continue
            parts = self.parts(function)
            name = parts[-1]
            given = function.type == "identifier" and name in self.names.objects
            run = name in {"eval", "exec", "eval_file"}
            imported = parts[-2:] in (["module_", "import"], ["module", "import"])
            if given or _PYTHON_CALLS.match(name) or (parts[0] in {"py", "pybind11"} and (run or imported)):
                self._report(CPP_HIDDEN.id, node, f"C++ calls back into Python ({name})")
            elif function.type == "field_expression" and _field(function)[1] == "attr" and not _is_module(node):
                self._report(CPP_HIDDEN.id, node, "C++ calls back into Python (attr)")
            elif len(parts) == 1 and name in _LOADERS:
                self._report(CPP_HIDDEN.id, node, f"C++ reaches code that is not in its sources ({name})")
            elif name in {"findSchema", "findSchemaOrThrow", "findOp"} or (
                parts[:2] == ["torch", "jit"] and name in {"load", "compile"}
            ):
                self._report(CPP_HIDDEN.id, node, f"C++ looks an operator up by name ({name})")
            elif function.type == "field_expression" and _field(function)[1] in {
                "findSchema",
                "findSchemaOrThrow",
                "callBoxed",
            }:
                self._report(CPP_HIDDEN.id, node, "C++ looks an operator up by name in the dispatcher")

    def _report(self, rule_id: str, node: Node, sentence: str) -> None:
        line = self.source.line(node)
        if (rule_id, line) in self.said:
            return
        self.said.add((rule_id, line))
        mend = {CPP_COMPUTE.id: CPP_COMPUTE.mend, CPP_CPU.id: CPP_CPU.mend, CPP_HIDDEN.id: CPP_HIDDEN.mend}[rule_id]
        self.found.append(Violation(rule_id, sentence, self.source.path, line, self.source.said(node), mend))


def _compute_name(parts: list[str]) -> str | None:
    """The operator a qualified name of torch's stands for, if it computes."""
    last, space = parts[-1], parts[1]
    if space == "_ops" and len(parts) >= 3:
        return None if parts[2] in AT_OPS else parts[2]
    if space == "nn" and len(parts) >= 3 and last not in {"Module", "Parameter"}:
        return last
    if space in _NAMESPACES and len(parts) >= 3:
        return last
    if len(parts) == 2 and last.startswith("_") and last[1:2].islower():
        return last
    if is_compute(last) and not (
        len(parts) > 2 and space in {"autograd", "indexing", "detail", "jit", "data", "optim"}
    ):
        return last
    return None


def _is_python_object(node: Node | None) -> bool:
    """Whether an operand is plainly an object of Python's: `py::cast(x)`, `py::object(...)`."""
    if node is None or node.type != "call_expression":
        return False
    function = node.child_by_field_name("function")
    said = _flat(text(function)) if function is not None else ""
    return (
        re.match(r"^(py|pybind11)::(cast|object|reinterpret_borrow|reinterpret_steal)(<(py|pybind11)::\w+>)?$", said)
        is not None
    )


def _is_module(node: Node) -> bool:
    """Whether `m.attr("name")` is only assigned to, as a module's constant is."""
    above = node.parent
    return above is not None and above.type == "assignment_expression" and above.child_by_field_name("left") == node


def _flat(said: str) -> str:
    return re.sub(r"\s*(::|<|>|,|&|\*)\s*", r"\1", " ".join(said.split()))


def _field(node: Node) -> tuple[Node | None, str]:
    """(object, method name) of `object.method` or `object->method`."""
    name = node.child_by_field_name("field")
    if name is not None and name.type == "template_method":
        name = name.child_by_field_name("name")
    return node.child_by_field_name("argument"), text(name) if name is not None else ""


def _declared(node: Node) -> tuple[str | None, Node | None]:
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


def _inside(node: Node, kinds: set[str]) -> bool:
    above = node.parent
    while above is not None:
        if above.type in kinds:
            return True
        above = above.parent
    return False
