"""Torch compute in C++, found in the syntax tree: functions, tensor methods, operators, and ways around their names."""

from __future__ import annotations

import re
from functools import cached_property

from tree_sitter import Node

from utils.rules.allowed_ops import AT_OPS
from utils.rules.cpp_names import Names, declared, field_of, flat, inside
from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_values import base, is_compute
from utils.rules.rule import Violation, rule

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


def cpp_compute_violations(source: CppSource) -> list[Violation]:
    """Breaches of the three rules in one source. A source that cannot see torch has no tensors to judge."""
    reader = _Reader(source)
    reader.read()
    return reader.found


class _Reader:
    def __init__(self, source: CppSource) -> None:
        self.source = source
        self.names = Names()
        self.found: list[Violation] = []
        self.said: set[tuple[str, int]] = set()

    def read(self) -> None:
        for node in walk(self.source.root):
            self.names.learn_file(node)
        self._hidden()
        if not self.source.sees_torch:
            return
        # Top-level names first, then each function with names of its own.
        for node in walk(self.source.root):
            if node.type in {"function_definition", "lambda_expression"} and not inside(
                node, {"function_definition", "lambda_expression"}
            ):
                self._function(node)
        for node in walk(self.source.root):
            if not inside(node, {"function_definition"}):
                self._node(node)

    def _function(self, node: Node) -> None:
        names = self.names
        outer = (set(names.tensors), set(names.many), set(names.turned), set(names.pointers))
        for inner in walk(node):
            self.names.learn(inner)
        for inner in walk(node):
            self._node(inner)
        names.tensors, names.many, names.turned, names.pointers = outer

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
        parts = self.names.parts(node)
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
            owner, name = field_of(function)
            if owner is None:
                return
            name = self.names.unmacro(name)
            tensor = self.names.is_tensor(owner) or text(owner) in self.names.pointers
            words = text(arguments) if arguments is not None else ""
            if name in self.names.pasting:
                self._report(CPP_HIDDEN.id, node, f"the method's name is pasted together by the macro {name}")
            elif name == "cpu" or (name == "to" and re.search(r"\bkCPU\b|DeviceType::CPU|\"cpu\"", words)):
                if tensor or name == "cpu":
                    self._report(CPP_CPU.id, node, "C++ moves a tensor to the CPU")
            elif name in {"contiguous", "reshape", "flatten"} and self.names.is_turned(owner):
                self._report(
                    CPP_COMPUTE.id, node, f"{name}() after a permuting view makes torch's copy kernel move the data"
                )
            elif name in {"to", "toType", "type"} and tensor and _DTYPES.search(words):
                self._report(CPP_COMPUTE.id, node, "C++ converts a tensor to another dtype with torch's kernel")
            elif is_compute(name) and (tensor or (base(name) not in _SHARED and self._could_be_tensor(owner))):
                self._report(CPP_COMPUTE.id, node, f"C++ calls the tensor method {name}, compute of torch's")
        elif function.type == "identifier" and self.names.opened and is_compute(text(function)):
            given = arguments.children if arguments is not None else []
            if any(self.names.is_tensor(child) for child in given):
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
                    name, _ = declared(child)
                    if name:
                        known.add(name)
        return known

    def _operator(self, node: Node) -> None:
        operator = node.child_by_field_name("operator")
        if operator is None or text(operator) not in _ARITHMETIC:
            return
        sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
        if any(side is not None and self.names.is_tensor(side) for side in sides):
            self._report(CPP_COMPUTE.id, node, f"C++ applies {text(operator)} to tensors, compute of torch's")
        elif text(operator) not in {"==", "!="} and any(_is_python_object(side) for side in sides):
            self._report(CPP_HIDDEN.id, node, f"C++ calls back into Python (operator {text(operator)})")

    def _assigning(self, node: Node) -> None:
        operator = node.child_by_field_name("operator")
        sign = text(operator) if operator is not None else ""
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if left is None:
            return
        if (sign in _ASSIGNING or (node.type == "unary_expression" and sign in {"-", "~"})) and self.names.is_tensor(
            left
        ):
            self._report(CPP_COMPUTE.id, node, f"C++ applies {sign} to a tensor, compute of torch's")
        elif sign == "=" and left.type == "subscript_expression" and self.names.is_tensor(left):
            self._report(CPP_COMPUTE.id, node, "C++ assigns to a part of a tensor, a copy by torch's kernel")

    def _macro(self, node: Node) -> None:
        value, parameters = node.child_by_field_name("value"), node.child_by_field_name("parameters")
        if value is None:
            return
        body = text(value)
        given = set(re.findall(r"\w+", text(parameters))) if parameters is not None else set()
        spaces = {name for name in self.names.macros if self.names.unmacro(name) in {"torch", "at"}} | {"torch", "at"}
        for match in re.finditer(rf"\b({'|'.join(sorted(spaces))})\s*::\s*([\w:\s]+)", body):
            parts = [
                self.names.unmacro(match.group(1)),
                *[self.names.unmacro(part.strip()) for part in match.group(2).split("::") if part.strip()],
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
                if kind is not None and _PYTHON_OBJECT.match(flat(text(kind))):
                    for child in node.children_by_field_name("declarator"):
                        self.names.objects.add(declared(child)[0] or "")
        for node in walk(self.source.root):
            if node.type != "call_expression":
                continue
            function = node.child_by_field_name("function")
            if function is None:
                continue
            parts = self.names.parts(function)
            name = parts[-1]
            given = function.type == "identifier" and name in self.names.objects
            run = name in {"eval", "exec", "eval_file"}
            imported = parts[-2:] in (["module_", "import"], ["module", "import"])
            if given or _PYTHON_CALLS.match(name) or (parts[0] in {"py", "pybind11"} and (run or imported)):
                self._report(CPP_HIDDEN.id, node, f"C++ calls back into Python ({name})")
            elif function.type == "field_expression" and field_of(function)[1] == "attr" and not _is_module(node):
                self._report(CPP_HIDDEN.id, node, "C++ calls back into Python (attr)")
            elif len(parts) == 1 and name in _LOADERS:
                self._report(CPP_HIDDEN.id, node, f"C++ reaches code that is not in its sources ({name})")
            elif name in {"findSchema", "findSchemaOrThrow", "findOp"} or (
                parts[:2] == ["torch", "jit"] and name in {"load", "compile"}
            ):
                self._report(CPP_HIDDEN.id, node, f"C++ looks an operator up by name ({name})")
            elif function.type == "field_expression" and field_of(function)[1] in {
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
    said = flat(text(function)) if function is not None else ""
    return (
        re.match(r"^(py|pybind11)::(cast|object|reinterpret_borrow|reinterpret_steal)(<(py|pybind11)::\w+>)?$", said)
        is not None
    )


def _is_module(node: Node) -> bool:
    """Whether `m.attr("name")` is only assigned to, as a module's constant is."""
    above = node.parent
    return above is not None and above.type == "assignment_expression" and above.child_by_field_name("left") == node
