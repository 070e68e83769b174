"""What an expression of the solution's Python is to the rules: its value as far as known, and the events in it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import replace

from utils.rules.python_values import (
    PLAIN,
    UNKNOWN,
    Builtin,
    Class,
    Function,
    Instance,
    LocalModule,
    Many,
    Method,
    Name,
    Plain,
    PythonFile,
    Scope,
    Tensor,
    TorchModule,
    TritonKernel,
    Unknown,
    Value,
    is_compute,
    torch_compute,
)

# Views after which memory no longer runs in order, so that contiguous() has to move it.
TURNING = {
    "t",
    "T",
    "mT",
    "H",
    "mH",
    "transpose",
    "permute",
    "swapaxes",
    "swapdims",
    "movedim",
    "moveaxis",
    "adjoint",
    "expand",
    "expand_as",
    "broadcast_to",
    "as_strided",
    "diagonal",
    "unfold",
}
_FACTS = {"shape", "dtype", "device", "ndim", "layout", "itemsize", "nbytes", "requires_grad", "is_cuda", "is_cpu"}
_TENSOR_ATTRIBUTES = {"T", "mT", "H", "mH", "data", "real", "imag", "grad"}
_WEIGHT_NAMES = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
CASTS = {
    "half",
    "float",
    "double",
    "bfloat16",
    "int",
    "long",
    "short",
    "byte",
    "char",
    "bool",
    "cfloat",
    "cdouble",
    "chalf",
    "type_as",
}
_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift", ast.USub: "neg", ast.Invert: "bitwise_not",
}  # fmt: skip


class Expressions(ABC):
    """Evaluates expressions; the reader supplies files, classes and function bodies."""

    file: PythonFile

    def __init__(self) -> None:
        self.context = "types"
        self.owner: Class | None = None
        self.weight_hooks: list[Value] = []
        self.forward_hooks: list[Value] = []

    @abstractmethod
    def emit(self, kind: str, name: str, node: ast.AST) -> None: ...

    @abstractmethod
    def note_reference(self, path: str, node: ast.AST) -> None: ...

    @abstractmethod
    def top_level(self, file: PythonFile, name: str) -> Value | None: ...

    @abstractmethod
    def run(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value: ...

    @abstractmethod
    def method(self, cls: Class, name: str, after: Class | None = None) -> Value | None: ...

    @abstractmethod
    def attribute_of(self, cls: Class, name: str) -> Value: ...

    @abstractmethod
    def torch_base(self, cls: Class) -> str | None: ...

    @abstractmethod
    def _call(self, node: ast.Call, scope: Scope) -> Value: ...

    @abstractmethod
    def _assign(self, targets: list[ast.expr], value: Value, scope: Scope) -> None: ...

    # -- evaluation -----------------------------------------------------------------------------------------------

    def quietly(self, node: ast.expr, scope: Scope) -> Value:
        """The value of `node` with no events: for asking what something is."""
        context, self.context = self.context, "types"
        try:
            return self.evaluate(node, scope)
        finally:
            self.context = context

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Value:
        """The value of an expression that is not called; a function merely mentioned counts as called."""
        value = self.value(node, scope)
        if isinstance(value, Function) and self.context != "types":
            me = value.me or (Instance(value.owner) if value.owner else None)
            self.run(value, [me] if me and not is_static(value) else [], {})
        return value

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        match node:
            case None:
                return PLAIN
            case ast.Constant():
                return Plain(node.value, True)
            case ast.Name():
                return self._name(node, scope)
            case ast.Attribute():
                return self._attribute(node, self.value(node.value, scope), node.attr)
            case ast.Call():
                return self._call(node, scope)
            case ast.BinOp():
                return self.operator(node.op, self.evaluate(node.left, scope), self.evaluate(node.right, scope), node)
            case ast.UnaryOp():
                inner = self.evaluate(node.operand, scope)
                if isinstance(inner, Tensor) and type(node.op) in _OPERATORS:
                    self.emit("operator", _OPERATORS[type(node.op)], node)
                    return Tensor()
                return inner if isinstance(inner, Tensor) else PLAIN
            case ast.Compare():
                return self._compare(node, scope)
            case ast.BoolOp():
                values = [self.evaluate(part, scope) for part in node.values]
                return next((v for v in values if isinstance(v, Tensor)), values[-1])
            case ast.IfExp():
                self.evaluate(node.test, scope)
                first, second = self.evaluate(node.body, scope), self.evaluate(node.orelse, scope)
                return first if not isinstance(first, (Plain, Unknown)) else second
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Tuple() | ast.List() | ast.Set():
                return Many(tuple(self.evaluate(unstar(item), scope) for item in node.elts))
            case ast.Dict():
                for key in node.keys:
                    self.evaluate(key, scope)
                return Many(tuple(self.evaluate(item, scope) for item in node.values))
            case ast.Lambda():
                return Function(node, self.file, scope)
            case ast.NamedExpr():
                value = self.evaluate(node.value, scope)
                scope.names[node.target.id] = value
                return value
            case ast.Starred() | ast.Await() | ast.YieldFrom():
                return self.evaluate(node.value, scope)
            case ast.Yield():
                return self.evaluate(node.value, scope)
            case ast.JoinedStr():
                return self._joined(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.Slice():
                for part in (node.lower, node.upper, node.step):
                    self.evaluate(part, scope)
                return PLAIN
            case _:
                return UNKNOWN

    def items(self, value: Value) -> list[Value]:
        """What iterating over `value` gives; never empty."""
        if isinstance(value, Many) and value.items:
            return list(value.items)
        if isinstance(value, Tensor):
            return [Tensor(weight=value.weight)]
        if isinstance(value, (Plain, TorchModule)):
            return [value if isinstance(value, TorchModule) else PLAIN]
        return [UNKNOWN]

    def operator(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        name = _OPERATORS.get(type(op), "add")
        if isinstance(left, Plain) and isinstance(right, Plain):
            return _fold(op, left, right)
        # A list times a number, or one list after another, is no arithmetic on tensors.
        if isinstance(op, (ast.Add, ast.Mult)) and (isinstance(left, Many) or isinstance(right, Many)):
            return left if isinstance(left, Many) else right
        if isinstance(op, ast.MatMult) or isinstance(left, Tensor) or isinstance(right, Tensor):
            self.emit("operator", name, node)
            return Tensor()
        return UNKNOWN

    # -- names and attributes --------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        value = scope.get(node.id)
        if value is None:
            value = self.top_level(self.file, node.id)
        if value is None:
            return Builtin(node.id)
        if isinstance(value, Name):
            self._refer(value.path, node)
        return value

    def _refer(self, path: str, node: ast.AST) -> None:
        self.note_reference(path, node)
        name = torch_compute(path)
        if name is not None:
            self.emit("torch", name, node)

    def _attribute(self, node: ast.AST, owner: Value, name: str) -> Value:
        if isinstance(owner, Name):
            path = f"{owner.path}.{name}"
            self._refer(path, node)
            return Name(path)
        if isinstance(owner, Tensor) and name == "__class__":
            return Name("torch.Tensor")
        if isinstance(owner, LocalModule):
            return self.top_level(owner.file, name) or UNKNOWN
        if isinstance(owner, Instance):
            found = self.attribute_of(owner.cls, name)
            if isinstance(found, Unknown) and not name.startswith("__"):
                found = self._asked_for(owner, name)
            if isinstance(found, Name):
                self._refer(found.path, node)
            if isinstance(found, Unknown):
                return Method(owner, name)
            if isinstance(found, Function):
                bound = replace(found, me=owner)
                return self.run(bound, [owner], {}) if _is_property(found) else bound
            return found
        if isinstance(owner, Class):
            method = self.method(owner, name)
            return method if method is not None else Method(owner, name)
        if isinstance(owner, TorchModule):
            return (
                Tensor(weight=True)
                if name in _WEIGHT_NAMES or name.startswith(("weight_", "bias_"))
                else Method(owner, name)
            )
        if isinstance(owner, Tensor):
            if name in _TENSOR_ATTRIBUTES:
                return Tensor(owner.weight, owner.turned or name in TURNING)
            if is_compute(name):
                # Mentioned is enough: `f = x.matmul` is on its way to being called.
                self.emit("cast" if name in CASTS else "torch", name, node)
            elif name in _FACTS:
                return PLAIN
            return Method(owner, name)
        if isinstance(owner, (Plain, Many)) or owner == Builtin("super()"):
            return Method(owner, name)
        return Method(UNKNOWN, name)

    def _asked_for(self, owner: Instance, name: str) -> Value:
        """What the class's own __getattr__ or __getattribute__ gives for `name`."""
        for special in ("__getattribute__", "__getattr__"):
            method = self.method(owner.cls, special)
            if isinstance(method, Function):
                found = self.run(method, [owner, Plain(name, True)], {})
                if not isinstance(found, Unknown):
                    return found
        return UNKNOWN

    def from_table(self, owner: Value, label: Value, node: ast.AST) -> Value | None:
        """The entry `label` of a namespace read as a table (`torch.__dict__`, `vars(self)`, sys.modules), if it is one.

        A name of torch's that cannot be read is hidden code.
        """
        known = isinstance(label, Plain) and label.known and isinstance(label.const, str)
        if isinstance(owner, Name) and owner.path == "sys.modules":
            if known:
                assert isinstance(label, Plain)
                return Name(str(label.const))
            return UNKNOWN
        if isinstance(owner, Builtin) and owner.name == "globals()":
            if known:
                assert isinstance(label, Plain)
                return self._name(ast.copy_location(ast.Name(str(label.const), ast.Load()), node), Scope())
            self.emit("hidden", "globals", node)
            return UNKNOWN
        inner: Value | None = None
        if isinstance(owner, Name) and owner.path.endswith(".__dict__"):
            inner = Name(owner.path.removesuffix(".__dict__"))
        elif isinstance(owner, Method) and owner.name == "__dict__":
            inner = owner.owner
        if inner is None:
            return None
        if known:
            assert isinstance(label, Plain)
            return self._attribute(node, inner, str(label.const))
        if isinstance(inner, (Tensor, LocalModule)) or (isinstance(inner, Name) and inner.path.startswith("torch")):
            self.emit("hidden", "__dict__", node)
        return UNKNOWN

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner = self.value(node.value, scope)
        index = self.evaluate(node.slice, scope)
        entry = self.from_table(owner, index, node)
        if entry is not None:
            return entry
        if isinstance(owner, Many):
            if (
                isinstance(index, Plain)
                and index.known
                and isinstance(index.const, int)
                and -len(owner.items) <= index.const < len(owner.items)
            ):
                return owner.items[index.const]
            tensors = [item for item in owner.items if not isinstance(item, (Plain, Unknown))]
            for item in tensors:
                if isinstance(item, Function):
                    self.evaluate_function(item)
            return tensors[0] if tensors else UNKNOWN
        if isinstance(owner, Tensor):
            parts = index.items if isinstance(index, Many) and isinstance(node.slice, ast.Tuple) else (index,)
            if any(isinstance(part, (Tensor, Many)) for part in parts):
                self.emit("index", "index", node)
                return Tensor()
            return Tensor(owner.weight, owner.turned)
        if isinstance(owner, TritonKernel):
            return owner
        return PLAIN if isinstance(owner, Plain) else UNKNOWN

    def evaluate_function(self, function: Function) -> None:
        if self.context != "types":
            self.run(function, [], {})

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        values = [self.evaluate(part, scope) for part in (node.left, *node.comparators)]
        identity = all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
        if not identity and any(isinstance(value, Tensor) for value in values):
            self.emit("operator", "compare", node)
            return Tensor()
        return PLAIN

    def implied(self, value: Value, names: tuple[str, ...]) -> None:
        """Runs special methods that the interpreter calls on an object of a class of the solution's."""
        if isinstance(value, Instance) and self.context != "types":
            for name in names:
                method = self.method(value.cls, name)
                if isinstance(method, Function):
                    self.run(method, [value], {})

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> Value:
        said = ""
        for part in node.values:
            value = self.evaluate(part.value if isinstance(part, ast.FormattedValue) else part, scope)
            self.implied(value, ("__format__", "__str__", "__repr__"))
            if not (isinstance(value, Plain) and value.known):
                return PLAIN
            said += str(value.const)
        return Plain(said, True)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
        inner = Scope(scope)
        for clause in node.generators:
            self._assign([clause.target], self.items(self.evaluate(clause.iter, inner))[0], inner)
            for test in clause.ifs:
                self.evaluate(test, inner)
        if isinstance(node, ast.DictComp):
            self.evaluate(node.key, inner)
            return Many((self.evaluate(node.value, inner),))
        return Many((self.evaluate(node.elt, inner),))


def unstar(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _is_property(function: Function) -> bool:
    if isinstance(function.node, ast.Lambda):
        return False
    return any(ast.unparse(d).split(".")[-1] in {"property", "cached_property"} for d in function.node.decorator_list)


def is_static(function: Function) -> bool:
    if isinstance(function.node, ast.Lambda):
        return True
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.node.decorator_list)


def _fold(op: ast.operator, left: Plain, right: Plain) -> Value:
    """Constant strings joined, so that a name put together from pieces is read as the name it is."""
    if left.known and right.known and isinstance(left.const, str):
        if isinstance(op, ast.Add) and isinstance(right.const, str):
            return Plain(left.const + right.const, True)
        if isinstance(op, ast.Mod):
            try:
                return Plain(left.const % right.const, True)
            except (TypeError, ValueError):
                return PLAIN
    return PLAIN
