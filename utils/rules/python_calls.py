"""What calling something gives: functions of the solution, of torch and of Python, methods of tensors and modules."""

from __future__ import annotations

import ast

from utils.rules.python_expressions import CASTS, TURNING, Expressions, is_static, unstar
from utils.rules.python_values import (
    CONTAINERS,
    FORWARD_HOOKS,
    PLAIN,
    UNKNOWN,
    WEIGHT_HOOKS,
    Builtin,
    Class,
    Function,
    Instance,
    LocalModule,
    Many,
    Method,
    Name,
    Plain,
    Scope,
    Tensor,
    TorchModule,
    TritonKernel,
    Unknown,
    Value,
    base,
    is_compute,
    torch_compute,
    torch_module_class,
)
from utils.rules.torch_names import CREATE, META, VIEW

# Methods other objects than tensors have too: said of an unknown object they prove nothing.
_SHARED_NAMES = {
    "add",
    "index",
    "sort",
    "map",
    "round",
    "put",
    "take",
    "mode",
    "pad",
    "compile",
    "all",
    "any",
    "count",
    "range",
    "float",
    "int",
    "bool",
    "log",
    "copy",
    "random",
    "cond",
}
_DYNAMIC = {"exec", "eval", "compile", "__import__"}
_BUILTINS_ON_TENSORS = {"sum", "abs", "max", "min", "pow", "round", "divmod"}
# What load_inline returns: its functions are the solution's own, whatever they are called.
_INLINE = "inline_extension"
# Special methods that run without being named, once an object of the class is at hand.
_IMPLIED = (
    "__iter__", "__next__", "__hash__", "__len__", "__bool__", "__enter__", "__exit__", "__del__", "__index__",
    "__int__", "__float__", "__format__", "__getitem__", "__contains__",
)  # fmt: skip
_SPECIAL_OF = {
    "str": ("__str__", "__repr__"), "repr": ("__repr__",), "format": ("__format__", "__str__"), "hash": ("__hash__",),
    "len": ("__len__",), "bool": ("__bool__", "__len__"), "iter": ("__iter__",), "list": ("__iter__", "__next__"),
    "tuple": ("__iter__", "__next__"), "next": ("__next__",), "int": ("__int__", "__index__"), "float": ("__float__",),
    "print": ("__str__", "__repr__"),
}  # fmt: skip
# Code that is not in the file: made from bytes, or fetched from another one.
_UNREADABLE = {
    "types.FunctionType", "types.CodeType", "types.LambdaType", "marshal.loads", "marshal.load", "runpy.run_path",
    "runpy.run_module", "code.InteractiveInterpreter", "codeop.compile_command", "builtins.exec",
    "importlib.machinery.SourceFileLoader",
}  # fmt: skip
_UNREADABLE_IN_FORWARD = {
    "pickle.loads", "pickle.load", "pickle.Unpickler", "_pickle.loads", "_pickle.load", "torch.load", "dill.loads",
    "cloudpickle.loads",
}  # fmt: skip
_FOLLOWED_CONTAINERS = {"Sequential", "ModuleList"}


class Calls(Expressions):
    """Calls; the reader supplies function bodies."""

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        function = self.value(node.func, scope)
        arguments: list[Value] = []
        for argument in node.args:
            value = self.evaluate(unstar(argument), scope)
            arguments += self.items(value) if isinstance(argument, ast.Starred) else [value]
        keywords = {kw.arg: self.evaluate(kw.value, scope) for kw in node.keywords if kw.arg}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.evaluate(keyword.value, scope)
        if isinstance(function, Builtin):
            return self._call_builtin(function.name, arguments, node)
        return self.call_value(function, arguments, keywords, node)

    def call_value(
        self, function: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None
    ) -> Value:
        if isinstance(function, Name):
            return self._call_name(function.path, arguments, keywords, node)
        if isinstance(function, Function):
            bound = list(arguments)
            if (
                function.owner is not None
                and not is_static(function)
                and not (bound and isinstance(bound[0], Instance))
            ):
                bound.insert(0, function.me or Instance(function.owner))
            return self.run(function, bound, keywords)
        if isinstance(function, Instance):
            return self._call_instance(function, arguments, keywords, node)
        if isinstance(function, TorchModule):
            self.emit("module", function.path, node or self.file.tree)
            return Tensor()
        if isinstance(function, Many):
            value = arguments[0] if arguments else UNKNOWN
            for item in function.items:
                value = self.call_value(item, [value, *arguments[1:]], keywords, node)
            return value
        if isinstance(function, Class):
            return self._construct(function, arguments, keywords)
        if isinstance(function, Method):
            return self._call_method(function, arguments, keywords, node)
        if isinstance(function, TritonKernel):
            return UNKNOWN
        return UNKNOWN

    def _call_instance(
        self, instance: Instance, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None
    ) -> Value:
        result: Value = UNKNOWN
        for name in ("__call__", "forward"):
            method = self.method(instance.cls, name)
            if isinstance(method, Function):
                found = self.run(method, [instance, *arguments], keywords)
                result = found if isinstance(result, Unknown) else result
            elif method is not None:
                result = self.call_value(method, arguments, keywords, node)
        if isinstance(result, Unknown) and self.method(instance.cls, "forward") is None:
            inherited = self.torch_base(instance.cls)
            if inherited:
                self.emit("module", inherited, node or self.file.tree)
        return Tensor() if isinstance(result, Unknown) else result

    def _construct(self, cls: Class, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        if self.context == "types":
            return Instance(cls)
        for keyword in cls.node.keywords:
            if keyword.arg == "metaclass":
                meta = self.quietly(keyword.value, cls.scope)
                method = self.method(meta, "__call__") if isinstance(meta, Class) else None
                if isinstance(method, Function):
                    self.run(method, [cls, *arguments], keywords)
        for name, first in (("__new__", cls), ("__init__", Instance(cls))):
            method = self.method(cls, name)
            if isinstance(method, Function):
                self.run(method, [first, *arguments], keywords)
        self.implied(Instance(cls), _IMPLIED)
        return Instance(cls)

    def _call_builtin(self, name: str, arguments: list[Value], node: ast.Call) -> Value:
        first = arguments[0] if arguments else UNKNOWN
        if name == "super":
            return Builtin("super()")
        if name in {"getattr", "setattr", "delattr", "hasattr"}:
            return self._getattr(name, arguments, node)
        if name in _DYNAMIC:
            if name == "__import__" and isinstance(first, Plain) and first.known:
                return Name(str(first.const).split(".")[0])
            self.emit("hidden", name, node)
            return UNKNOWN
        if name in {"staticmethod", "classmethod"}:
            return first
        if name == "globals":
            return Builtin("globals()")
        if name == "vars" and arguments:
            return self._attribute(node, first, "__dict__")
        if name in {"locals", "vars"}:
            return UNKNOWN
        if name == "type" and isinstance(first, Tensor) and len(arguments) == 1:
            return Name("torch.Tensor")
        if name == "type" and isinstance(first, Instance) and len(arguments) == 1:
            return first.cls
        if name in _SPECIAL_OF:
            for argument in arguments:
                self.implied(argument, _SPECIAL_OF[name])
        if name in _BUILTINS_ON_TENSORS:
            inside = [item for value in arguments for item in (value.items if isinstance(value, Many) else (value,))]
            if any(isinstance(value, Tensor) for value in inside):
                self.emit("operator", name, node)
                return Tensor()
            return PLAIN
        if name in {"list", "tuple", "reversed", "sorted", "iter", "set"}:
            return first if isinstance(first, Many) else Many((self.items(first)[0],))
        if name == "zip":
            return Many((Many(tuple(self.items(value)[0] for value in arguments)),))
        if name == "enumerate":
            return Many(tuple(Many((PLAIN, item)) for item in self.items(first)))
        if name == "map" and len(arguments) >= 2:
            return Many((self.call_value(first, [self.items(value)[0] for value in arguments[1:]], {}, node),))
        if name == "next":
            return self.items(first)[0]
        return PLAIN

    def _getattr(self, name: str, arguments: list[Value], node: ast.Call) -> Value:
        if name != "getattr" or len(arguments) < 2:
            return PLAIN
        owner, label = arguments[0], arguments[1]
        if isinstance(label, Plain) and label.known and isinstance(label.const, str):
            return self._attribute(node, owner, label.const)
        if isinstance(owner, (Tensor, LocalModule)) or (
            isinstance(owner, Name) and owner.path.split(".")[0] == "torch"
        ):
            self.emit("hidden", "getattr", node)
        return UNKNOWN

    def _call_name(self, path: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None) -> Value:
        root = path.split(".")[0]
        last = path.split(".")[-1]
        where: ast.AST = node or self.file.tree
        if last == "__getattribute__" and isinstance(node, ast.Call):
            owned = [*([] if len(arguments) > 1 else [Name(path.rpartition(".")[0])]), *arguments]
            return self._getattr("getattr", owned, node)
        if path == "inspect.getattr_static" and isinstance(node, ast.Call):
            return self._getattr("getattr", arguments, node)
        holder, _, method = path.rpartition(".")
        if holder.endswith(".__dict__") or holder == "sys.modules":
            label = arguments[0] if arguments else UNKNOWN
            entry = self.from_table(Name(holder), label, where) if method in {"get", "__getitem__", "pop"} else None
            if entry is None and holder.startswith("torch."):
                self.emit("hidden", "__dict__", where)
            return entry or UNKNOWN
        if path in _UNREADABLE or (path in _UNREADABLE_IN_FORWARD and self.context == "forward"):
            self.emit("hidden", path, where)
            return UNKNOWN
        if path in {"functools.partial", "collections.OrderedDict"} and arguments:
            return arguments[0]
        if path in {"importlib.import_module", "importlib.__import__"}:
            label = arguments[0] if arguments else UNKNOWN
            if isinstance(label, Plain) and label.known:
                return Name(str(label.const))
            self.emit("hidden", "import_module", node or self.file.tree)
            return UNKNOWN
        if root == "builtins" and node is not None:
            return self._call_builtin(last, arguments, node)
        if root in {"operator", "_operator"}:
            return self._call_operator(last, arguments, node)
        if root == "math":
            return PLAIN
        if root in {"numpy", "scipy", "cupy"}:
            if any(isinstance(value, Tensor) for value in arguments):
                self.emit("cpu", last, node or self.file.tree)
            return UNKNOWN
        if root == "torch" and "cpp_extension" not in path:
            return self._call_torch(path, last, arguments, keywords, node)
        if path in {"torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load"}:
            return Name(_INLINE)
        if root in {"cuda_extension", _INLINE}:
            return Tensor()
        return UNKNOWN

    def _call_operator(self, name: str, arguments: list[Value], node: ast.Call | None) -> Value:
        name = name.strip("_")
        if name in {"itemgetter", "attrgetter", "methodcaller"}:
            label = arguments[0] if arguments else UNKNOWN
            if name != "itemgetter" and not (isinstance(label, Plain) and label.known):
                self.emit("hidden", name, node or self.file.tree)
            if name != "itemgetter" and isinstance(label, Plain) and label.known and is_compute(str(label.const)):
                self.emit("torch", str(label.const), node or self.file.tree)
            return UNKNOWN
        if name == "matmul" or any(isinstance(value, Tensor) for value in arguments):
            self.emit("operator", name, node or self.file.tree)
            return Tensor()
        return PLAIN

    def _call_torch(
        self, path: str, last: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None
    ) -> Value:
        where = node or self.file.tree
        if last == "register_parametrization":
            # From now on reading the parameter runs the parametrization.
            self.forward_hooks += arguments[2:3] or [v for k, v in keywords.items() if k == "parametrization"]
            return UNKNOWN
        name = torch_compute(path)
        if name is not None:
            self._computed(name, where)
            return Tensor()
        if path.startswith("torch.nn.") and last in _FOLLOWED_CONTAINERS | {"ModuleDict"}:
            items = tuple(_flat(arguments))
            return Many(items) if items else TorchModule(path)
        if torch_module_class(path):
            return TorchModule(path)
        if path.startswith("torch.nn.") and last in CONTAINERS:
            return Tensor(weight=True) if "Parameter" in last or last == "Buffer" else UNKNOWN
        if last in CREATE:
            if _says_cpu(keywords.get("device")) and self.context == "forward":
                self.emit("cpu", f"{last} on the CPU", where)
            return Tensor()
        if last in VIEW:
            first = arguments[0] if arguments else UNKNOWN
            weight = isinstance(first, Tensor) and first.weight
            return Tensor(weight, last in TURNING or (isinstance(first, Tensor) and first.turned))
        if last in META or path.startswith(("torch.cuda", "torch.backends")):
            return PLAIN
        if path.startswith("torch.ops."):
            return Tensor()
        return UNKNOWN

    def _call_method(
        self, method: Method, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None
    ) -> Value:
        owner, name = method.owner, method.name
        where: ast.AST = node or self.file.tree
        if name == "__getattribute__" and isinstance(node, ast.Call):
            return self._getattr("getattr", arguments if len(arguments) > 1 else [owner, *arguments], node)
        if name in {"get", "__getitem__", "pop"} and arguments:
            entry = self.from_table(owner, arguments[0], where)
            if entry is not None:
                return entry
        if isinstance(owner, Builtin) and owner.name == "globals()":
            return UNKNOWN
        if isinstance(owner, Builtin):
            return self._call_super(name, arguments, keywords, node)
        if isinstance(owner, Plain):
            return PLAIN
        self._hooks(name, arguments)
        if isinstance(owner, TorchModule):
            if name in {"forward", "__call__", "_call_impl"}:
                self.emit("module", owner.path, where)
                return Tensor()
            return owner if name in {"to", "cuda", "eval", "train", "half", "float"} else UNKNOWN
        if isinstance(owner, Many):
            if name in {"append", "extend", "insert", "add"}:
                return PLAIN
            if name in {"values", "get", "pop", "items"}:
                return owner if name in {"values", "items"} else (owner.items[0] if owner.items else UNKNOWN)
            return UNKNOWN
        if isinstance(owner, (Instance, Class)):
            if name in {"forward", "__call__", "_call_impl", "apply"} and isinstance(owner, Class):
                target = self.method(owner, "forward")
                if isinstance(target, Function):
                    return self.run(target, [UNKNOWN, *arguments], keywords)
            if name in {"parameters", "buffers"}:
                return Many((Tensor(weight=True),))
            if name in {"named_parameters", "named_buffers"}:
                return Many((Many((PLAIN, Tensor(weight=True))),))
            if name in {"forward", "__call__"} and isinstance(owner, Instance):
                return self._call_instance(owner, arguments, keywords, node)
            return UNKNOWN
        if isinstance(owner, Tensor) or (is_compute(name) and base(name) not in _SHARED_NAMES):
            return self._call_tensor(owner, name, arguments, keywords, where)
        if name in {"cpu", "numpy", "tolist"}:
            # An unknown object with these methods is a tensor in all but name.
            self.emit("cpu", name, where)
        return UNKNOWN

    def _call_tensor(
        self, owner: Value, name: str, arguments: list[Value], keywords: dict[str, Value], where: ast.AST
    ) -> Value:
        weight = isinstance(owner, Tensor) and owner.weight
        turned = isinstance(owner, Tensor) and owner.turned
        if name == "contiguous":
            # On what forward was given it is a guard; after a permuting view it is torch's copy kernel at work.
            if turned and not weight:
                self.emit("layout", "contiguous", where)
            return Tensor(weight)
        if name in {"reshape", "flatten", "reshape_as"} and turned and not weight:
            self.emit("layout", name, where)
            return Tensor()
        if name in VIEW:
            many = name in {"split", "chunk", "unbind", "tensor_split", "split_with_sizes", "hsplit", "vsplit"}
            return Tensor(weight, turned or name in TURNING) if not many else Many((Tensor(weight, turned),))
        if name in {"to", "type"}:
            return self._call_to(name, weight, turned, arguments, keywords, where)
        if name in {"cpu", "numpy", "tolist"}:
            self.emit("cpu", name, where)
            return Tensor(weight)
        if name == "cuda":
            return Tensor(weight, turned)
        if name in META:
            return PLAIN
        if name in CREATE:
            return Tensor(weight) if name.endswith("_") else Tensor()
        if is_compute(name):
            self.emit("cast" if name in CASTS else "torch", name, where)
            self._computed(name, where)
            return Tensor()
        return UNKNOWN

    def _computed(self, name: str, where: ast.AST) -> None:
        """A call that computes, as opposed to a function that is merely mentioned: outside forward only calls count."""
        if self.context != "forward":
            self.emit("call", name, where)

    def _call_to(
        self, name: str, weight: bool, turned: bool, arguments: list[Value], keywords: dict[str, Value], where: ast.AST
    ) -> Value:
        given = [*arguments, *keywords.values()]
        if any(_says_cpu(value) for value in given):
            self.emit("cpu", name, where)
        elif name == "type" and not given:
            return PLAIN
        elif (
            "dtype" in keywords
            or any(isinstance(value, Name) and _is_dtype(value.path) for value in given)
            or any(isinstance(value, Tensor) for value in arguments)
        ):
            self.emit("cast", name, where)
        return Tensor(weight, turned)

    def _call_super(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call | None
    ) -> Value:
        if self.owner is None:
            return UNKNOWN
        method = self.method(self.owner, name, after=self.owner)
        if isinstance(method, Function):
            return self.run(method, [Instance(self.owner), *arguments], keywords)
        if name in {"forward", "__call__"}:
            inherited = self.torch_base(self.owner)
            if inherited:
                self.emit("module", inherited, node or self.file.tree)
            return Tensor()
        return UNKNOWN

    def _hooks(self, name: str, arguments: list[Value]) -> None:
        if name in FORWARD_HOOKS:
            self.forward_hooks += arguments[:1]
        elif name in WEIGHT_HOOKS:
            self.weight_hooks += arguments[:1]


def _flat(values: list[Value] | tuple[Value, ...]) -> list[Value]:
    """The members of nested lists and dicts, without names and numbers."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, Many):
            found += _flat(value.items)
        elif not isinstance(value, Plain):
            found.append(value)
    return found


def _says_cpu(value: Value | None) -> bool:
    return isinstance(value, Plain) and value.known and isinstance(value.const, str) and value.const.startswith("cpu")


def _is_dtype(path: str) -> bool:
    last = path.split(".")[-1]
    return (path.startswith("torch.") and last.rstrip("0123456789") in {
        "float", "bfloat", "half", "double", "int", "uint", "long", "short", "bool", "complex", "float8_e", "cfloat",
    }) or last.startswith("float8")  # fmt: skip
