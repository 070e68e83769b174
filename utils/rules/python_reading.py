"""Reading a solution's Python as torch would run it: from ModelNew.forward, from the constructor, from the hooks.

The reader follows names instead of matching words: imports and their aliases, assignments, attributes of self, helper
functions and classes, files imported from beside the solution, getattr with a name that the text gives. What it meets
on the way that a rule may care about it records as an Event, with the context it was met in:

    forward   reached from ModelNew.forward or a forward hook
    early     reached from the constructor or the top level of the file
    hook      reached from load_state_dict, its hooks, or an overridden train/to/_apply

A comment, a docstring, a word in a string or an unused helper is never met, so it is never judged.
"""

from __future__ import annotations

import ast
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.solution import parse
from utils.rules.python_statements import Statements
from utils.rules.python_structure import annotated, base_name, collect_attributes, top_level
from utils.rules.python_values import (
    PLAIN,
    UNKNOWN,
    Class,
    Event,
    Function,
    Instance,
    LocalModule,
    Many,
    Name,
    PythonFile,
    Scope,
    Tensor,
    TorchModule,
    TritonKernel,
    Unknown,
    Value,
    torch_compute,
    torch_module_class,
)

FORWARD_ROOTS = ("forward", "__call__", "_call_impl", "__torch_function__")
HOOK_ROOTS = (
    "load_state_dict",
    "_load_from_state_dict",
    "_register_load_state_dict_pre_hook",
    "state_dict",
    "train",
    "eval",
    "_apply",
    "to",
    "cuda",
    "half",
    "float",
    "__setattr__",
    "__setstate__",
)


class Reader(Statements):
    """Files, classes and entry points of one solution; what their code does is read by the base classes."""

    def __init__(self, path: Path, hints: list[str | None] | None = None) -> None:
        """`hints`: the annotations of Model.forward's parameters, in order, for parameters that have none here."""
        super().__init__()
        self.folder = path.parent
        self.hints = hints or []
        self.files: dict[Path, PythonFile] = {}
        self.file = self.load(path)
        self.events: dict[str, list[Event]] = {"forward": [], "early": [], "hook": []}
        # Every imported thing met, by its full name, with the context it was met in.
        self.references: list[tuple[str, str, Path, int]] = []
        self._seen: set[tuple] = set()
        self._globals: dict[tuple, Value] = {}
        self.weight_hooks: list[Value] = []
        self.forward_hooks: list[Value] = []
        self.model_new = self._class("ModelNew")
        self._late_attributes()
        for cls in self._classes("ModelNew"):
            self._read(cls)

    # -- files and top-level names ------------------------------------------------------------------------------

    def load(self, path: Path) -> PythonFile:
        path = path.resolve()
        if path not in self.files:
            file = PythonFile(path, parse(path))
            self.files[path] = file
            for statement in top_level(file.tree.body):
                self._bind_top_level(file, statement)
        return self.files[path]

    def local_file(self, module: str, from_file: PythonFile) -> PythonFile | None:
        """The file of a module that lies beside the solution, if `module` names one."""
        if module.split(".")[0] == "utils":
            return None  # the workbench's own, never part of a solution
        relative = Path(*module.split("."))
        for candidate in (self.folder / relative.with_suffix(".py"), self.folder / relative / "__init__.py"):
            if candidate.is_file():
                try:
                    return self.load(candidate)
                except CannotTell:
                    return None
        return None

    def _bind_top_level(self, file: PythonFile, node: ast.AST) -> None:
        def bind(name: str, what: ast.AST) -> None:
            file.bindings.setdefault(name, []).append(what)

        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bind(node.name, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                bind(alias.asname or alias.name.split(".")[0], node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        bind(name.id, node.value if isinstance(target, ast.Name) else node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            bind(node.target.id, node.value)

    def top_level(self, file: PythonFile, name: str) -> Value | None:
        """The value of a top-level name; what its expression refers to is met in the present context."""
        if name not in file.bindings:
            return None
        key = (self.context, file.path, name)
        if key not in self._globals:
            self._globals[key] = UNKNOWN  # a name defined by itself ends here
            outer, self.file = self.file, file
            value: Value = UNKNOWN
            for binding in file.bindings[name]:
                found = self._bound(file, name, binding)
                value = found if not isinstance(found, Unknown) else value
            self.file = outer
            self._globals[key] = value
        return self._globals[key]

    def _bound(self, file: PythonFile, name: str, binding: ast.AST) -> Value:
        if isinstance(binding, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.define(binding, file, file.scope)
        if isinstance(binding, ast.ClassDef):
            return self.define_class(binding, file, file.scope)
        if isinstance(binding, (ast.Import, ast.ImportFrom)):
            return self.imported(binding, name)
        if isinstance(binding, ast.expr):
            return self.evaluate(binding, file.scope)
        if isinstance(binding, ast.Assign):
            scope = Scope(file.scope)
            self._assign(binding.targets, self.evaluate(binding.value, file.scope), scope)
            return scope.names.get(name, UNKNOWN)
        return UNKNOWN

    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Value:
        """What the local name `name` means after the import statement `node`."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                if (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                full = alias.name if alias.asname else alias.name.split(".")[0]
                local = self.local_file(full, self.file)
                return LocalModule(local) if local else Name(full)
            if (alias.asname or alias.name) != name:
                continue
            module = node.module or ""
            local = self.local_file(module, self.file) if module else None
            if local is not None:
                return self.top_level(local, alias.name) or UNKNOWN
            inside = (
                self.local_file(f"{module}.{alias.name}" if module else alias.name, self.file) if node.level else None
            )
            return LocalModule(inside) if inside else Name(f"{module}.{alias.name}")
        return UNKNOWN

    def define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, file: PythonFile, scope: Scope, owner: Class | None = None
    ) -> Value:
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            value = self.evaluate(target, scope)
            if isinstance(value, Name) and value.path.split(".")[0] == "triton":
                return TritonKernel()
        return Function(node, file, scope, owner)

    def define_class(self, node: ast.ClassDef, file: PythonFile, scope: Scope) -> Class:
        key = ("class", id(node))
        if key not in self._globals:
            cls = Class(node, file, scope)
            self._globals[key] = cls
            collect_attributes(cls)
        found = self._globals[key]
        assert isinstance(found, Class)
        return found

    # -- classes ------------------------------------------------------------------------------------------------

    def _class(self, name: str) -> Class | None:
        self.context = "types"
        value = self.top_level(self.file, name)
        return value if isinstance(value, Class) else None

    def _classes(self, name: str) -> list[Class]:
        """Every class that the top-level name is bound to, one after another or in branches."""
        found = [] if self.model_new is None else [self.model_new]
        for binding in self.file.bindings.get(name, []):
            value = self._bound(self.file, name, binding) if isinstance(binding, ast.ClassDef) else None
            if isinstance(value, Class) and value not in found:
                found.append(value)
        return found

    def _late_attributes(self) -> None:
        """`ModelNew.f = ...` and `setattr(ModelNew, "f", ...)` outside the class set attributes of it."""
        for file in list(self.files.values()):
            self.file = file
            for node in ast.walk(file.tree):
                pairs: list[tuple[ast.expr, str, ast.expr]] = []
                if isinstance(node, ast.Assign):
                    pairs = [(t.value, t.attr, node.value) for t in node.targets if isinstance(t, ast.Attribute)]
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
                    label = node.args[1] if len(node.args) == 3 else None
                    if isinstance(label, ast.Constant) and isinstance(label.value, str):
                        pairs = [(node.args[0], label.value, node.args[2])]
                for owner, name, value in pairs:
                    cls = self.quietly(owner, file.scope) if isinstance(owner, ast.Name) else None
                    if isinstance(cls, Class) and name not in FORWARD_ROOTS:
                        cls.attributes.setdefault(name, []).append((value, None))
        self.file = next(iter(self.files.values()))

    def bases(self, cls: Class) -> list[Value]:
        return [self.quietly(base, cls.scope) for base in cls.node.bases]

    def family(self, cls: Class) -> list[Class]:
        """The class and its bases that the solution defines, nearest first."""
        found = [cls]
        for base in self.bases(cls):
            if isinstance(base, Class) and base not in found:
                found += [c for c in self.family(base) if c not in found]
        return found

    def method(self, cls: Class, name: str, after: Class | None = None) -> Value | None:
        """The method `name` of `cls` (of what comes after `after` in its family, for super())."""
        family = self.family(cls)
        if after in family:
            family = family[family.index(after) + 1 :]
        for member in family:
            for statement in member.node.body:
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == name:
                    return self.define(statement, member.file, member.scope, member)
                if isinstance(statement, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == name for target in statement.targets
                ):
                    return self.evaluate(statement.value, member.scope)
        return None

    def torch_base(self, cls: Class) -> str | None:
        """A base class of torch.nn that brings a forward of its own."""
        for member in self.family(cls):
            for base in self.bases(member):
                if isinstance(base, Name) and torch_module_class(base.path):
                    return base.path
        return None

    def attribute_of(self, cls: Class, name: str) -> Value:
        """What `self.<name>` is, from every assignment to it in the class."""
        method = self.method(cls, name)
        if method is not None:
            return method
        key = (self.context, id(cls), "self." + name)
        if key in self._globals:
            return self._globals[key]
        self._globals[key] = UNKNOWN
        best: Value = UNKNOWN
        for member in self.family(cls):
            for expression, function in member.attributes.get(name, []):
                value = self.quietly(expression, self._method_scope(member, function))
                if (
                    (isinstance(value, Name) and torch_compute(value.path))
                    or isinstance(best, Unknown)
                    or isinstance(value, (TorchModule, Tensor))
                ):
                    best = value
        appended = [
            self.quietly(expression, self._method_scope(member, function))
            for member in self.family(cls)
            for expression, function in member.attributes.get(name + "[]", [])
        ]
        if appended:
            best = Many((*(best.items if isinstance(best, Many) else ()), *appended))
        if isinstance(best, Tensor):
            best = Tensor(weight=True, turned=best.turned)
        self._globals[key] = best
        return best

    def _method_scope(self, cls: Class, function: Function | None) -> Scope:
        """The names an expression inside a method of `cls` can see."""
        scope = Scope(cls.scope)
        if function is not None:
            self._parameters(function, [Instance(cls)], {}, scope)
            self._local_names(function, scope)
        return scope

    # -- the reading itself -------------------------------------------------------------------------------------

    def _read(self, cls: Class) -> None:
        instance = Instance(cls)
        self.context = "early"
        top = Scope(self.file.scope)  # a scope of its own: forward must meet these names again
        for statement in self.file.tree.body:
            if not isinstance(
                statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
            ):
                self._statement(statement, top, [])
        self._root(instance, "__init__")
        self.context = "hook"
        for name in HOOK_ROOTS:
            self._root(instance, name)
        for hook in self.weight_hooks:
            self.call_value(hook, [], {}, None)
        self.context = "forward"
        for name in FORWARD_ROOTS:
            self._root(instance, name)
        for hook in self.forward_hooks:
            self.call_value(hook, [], {}, None)
        for value in self._patched_methods():
            self.call_value(value, [instance], {}, None)
        base = self.torch_base(cls)
        if base and not isinstance(self.method(cls, "forward"), Function):
            self.emit("inherit", base, cls.node)

    def _root(self, instance: Instance, name: str) -> None:
        method = self.method(instance.cls, name)
        if method is None:
            return
        if isinstance(method, Function) and not isinstance(method.node, ast.Lambda):
            for decorator in method.node.decorator_list:
                self.evaluate(decorator, method.scope)
            arguments: list[Value] = [instance]
            if name == "forward":
                arguments += self._forward_arguments(method.node)
            self.run(method, arguments, {})
        else:
            self.call_value(method, [instance], {}, None)

    def _forward_arguments(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Value]:
        """What forward is called with: tensors, unless an annotation, here or in Model, or a default says otherwise."""
        names = node.args.args[1:]
        defaults = [None] * (len(names) - len(node.args.defaults)) + list(node.args.defaults)
        values: list[Value] = []
        for index, (argument, default) in enumerate(zip(names, defaults, strict=False)):
            said = ast.unparse(argument.annotation) if argument.annotation else None
            if said is None and index < len(self.hints):
                said = self.hints[index]
            if said is not None:
                values.append(annotated(said))
            elif isinstance(default, ast.Constant) and default.value is not None:
                values.append(PLAIN)
            elif default is not None and not isinstance(default, ast.Constant):
                values.append(self.value(default, self.file.scope))
            else:
                values.append(Tensor())
        return values

    def _patched_methods(self) -> list[Value]:
        """Values assigned to ModelNew's forward and call from outside the class: `ModelNew.forward = fast`."""
        found = []
        for file in list(self.files.values()):
            for node in ast.walk(file.tree):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id == "setattr"
                    and len(node.args) == 3
                    and isinstance(node.args[1], ast.Constant)
                    and node.args[1].value in FORWARD_ROOTS
                    and isinstance(self.quietly(node.args[0], file.scope), Class)
                ):
                    found.append(self.evaluate(node.args[2], file.scope))
                if not isinstance(node, ast.Assign):
                    continue
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr in FORWARD_ROOTS
                        and isinstance(target.value, ast.Name)
                        and isinstance(self.quietly(target.value, file.scope), Class)
                    ):
                        found.append(self.evaluate(node.value, file.scope))
        return found

    def _local_names(self, function: Function, scope: Scope) -> None:
        """Plain assignments of a method, so that an attribute set from a local name is understood."""
        if isinstance(function.node, ast.Lambda):
            return
        for statement in function.node.body:
            if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
                value = self.quietly(statement.value, scope)
                for target in statement.targets:
                    assert isinstance(target, ast.Name)
                    scope.names[target.id] = value

    def emit(self, kind: str, name: str, node: ast.AST) -> None:
        if self.context not in self.events:
            return
        line = getattr(node, "lineno", 0)
        # One event for a thing said once, however many ways lead to it.
        key = (self.context, kind, base_name(name), self.file.path, line)
        if key in self._seen:
            return
        self._seen.add(key)
        self.events[self.context].append(Event(kind, name, self.file.path, line, self.text(node)))

    def note_reference(self, path: str, node: ast.AST) -> None:
        if self.context in self.events:
            self.references.append((self.context, path, self.file.path, getattr(node, "lineno", 0)))

    def text(self, node: ast.AST) -> str:
        try:
            said = " ".join(ast.unparse(node).split())
        except (ValueError, RecursionError):
            return ""
        return said if len(said) <= 90 else said[:87] + "..."
