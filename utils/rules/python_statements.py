"""Running the solution's functions on paper: parameters take their arguments, statements bind names."""

from __future__ import annotations

import ast
from abc import abstractmethod

from utils.rules.python_calls import Calls
from utils.rules.python_structure import annotated, kind
from utils.rules.python_values import PLAIN, UNKNOWN, Class, Function, Many, PythonFile, Scope, Tensor, Unknown, Value

# Calls within calls that are followed; honest code stays far below.
_DEEPEST = 40


class Statements(Calls):
    """Bodies of functions, statement by statement; the reader supplies files and classes."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[tuple, Value] = {}
        self._depth = 0

    @abstractmethod
    def define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, file: PythonFile, scope: Scope, owner: Class | None = None
    ) -> Value: ...

    @abstractmethod
    def define_class(self, node: ast.ClassDef, file: PythonFile, scope: Scope) -> Class: ...

    @abstractmethod
    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Value: ...

    def run(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """The value a call of the solution's own function gives; everything in its body is met."""
        key = (
            self.context,
            id(function.node),
            tuple(kind(a) for a in arguments),
            tuple(sorted((k, kind(v)) for k, v in keywords.items())),
        )
        if key in self._running:
            return self._running[key]
        if self._depth > _DEEPEST:
            return UNKNOWN
        self._running[key] = UNKNOWN
        outer, self.file = self.file, function.file
        scope = Scope(function.scope)
        self._parameters(function, arguments, keywords, scope)
        owner, self.owner = self.owner, function.owner
        self._depth += 1
        returns: list[Value] = []
        if isinstance(function.node, ast.Lambda):
            returns.append(self.evaluate(function.node.body, scope))
        else:
            self._block(function.node.body, scope, returns)
        self._depth -= 1
        self.file, self.owner = outer, owner
        value = next((v for v in returns if not isinstance(v, Unknown)), UNKNOWN)
        self._running[key] = value
        return value

    def _parameters(self, function: Function, arguments: list[Value], keywords: dict[str, Value], scope: Scope) -> None:
        spec = function.node.args
        positional = [*spec.posonlyargs, *spec.args]
        defaults: dict[str, ast.expr] = {
            argument.arg: default
            for argument, default in [
                *zip(reversed(positional), reversed(spec.defaults), strict=False),
                *((a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None),
            ]
            if not isinstance(default, ast.Constant)
        }
        for index, argument in enumerate(positional):
            if index < len(arguments):
                value = arguments[index]
            elif argument.arg in keywords:
                value = keywords[argument.arg]
            elif argument.arg in defaults:
                value = self.value(defaults[argument.arg], function.scope)
            elif argument.annotation is not None:
                value = annotated(ast.unparse(argument.annotation))
            else:
                value = UNKNOWN
            scope.names[argument.arg] = value
        if spec.vararg:
            rest = tuple(arguments[len(positional) :])
            scope.names[spec.vararg.arg] = Many(rest) if rest else UNKNOWN
        for argument in spec.kwonlyargs:
            default = defaults.get(argument.arg)
            scope.names[argument.arg] = keywords.get(argument.arg) or (
                self.value(default, function.scope) if default is not None else UNKNOWN
            )
        if spec.kwarg:
            scope.names[spec.kwarg.arg] = UNKNOWN

    def _block(self, statements: list[ast.stmt], scope: Scope, returns: list[Value]) -> None:
        for statement in statements:
            self._statement(statement, scope, returns)

    def _statement(self, node: ast.stmt, scope: Scope, returns: list[Value]) -> None:
        match node:
            case ast.Expr():
                self.evaluate(node.value, scope)
            case ast.Return():
                returns.append(self.evaluate(node.value, scope) if node.value else PLAIN)
            case ast.Assign():
                self._assign(node.targets, self.evaluate(node.value, scope), scope)
            case ast.AnnAssign():
                value = self.evaluate(node.value, scope) if node.value else annotated(ast.unparse(node.annotation))
                self._assign([node.target], value, scope)
            case ast.AugAssign():
                self._augmented(node, scope)
            case ast.For() | ast.AsyncFor():
                items = self.evaluate(node.iter, scope)
                # Twice, so that what the first turn leaves behind is seen by the second.
                for _ in range(2):
                    for item in self.items(items):
                        self._assign([node.target], item, scope)
                        self._block(node.body, scope, returns)
                self._block(node.orelse, scope, returns)
            case ast.While():
                for _ in range(2):
                    self.evaluate(node.test, scope)
                    self._block(node.body, scope, returns)
                self._block(node.orelse, scope, returns)
            case ast.If():
                self.evaluate(node.test, scope)
                self._block(node.body, scope, returns)
                self._block(node.orelse, scope, returns)
            case ast.With() | ast.AsyncWith():
                for opened in node.items:
                    value = self.evaluate(opened.context_expr, scope)
                    if opened.optional_vars is not None:
                        self._assign([opened.optional_vars], value, scope)
                self._block(node.body, scope, returns)
            case ast.Try():
                self._block(node.body, scope, returns)
                for handler in node.handlers:
                    self._block(handler.body, scope, returns)
                self._block(node.orelse, scope, returns)
                self._block(node.finalbody, scope, returns)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.names[node.name] = self.define(node, self.file, scope)
            case ast.ClassDef():
                scope.names[node.name] = self.define_class(node, self.file, scope)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
                    scope.names[name] = self.imported(node, name)
            case ast.Match():
                subject = self.evaluate(node.subject, scope)
                for case in node.cases:
                    self._match(case.pattern, subject, scope)
                    self.evaluate(case.guard, scope)
                    self._block(case.body, scope, returns)
            case ast.Assert() | ast.Raise() | ast.Delete():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr) and not isinstance(node, ast.Delete):
                        self.evaluate(child, scope)

    def _match(self, pattern: ast.pattern, value: Value, scope: Scope) -> None:
        """Binds the names of a pattern; a class pattern reads attributes of the subject."""
        match pattern:
            case ast.MatchAs():
                if pattern.pattern is not None:
                    self._match(pattern.pattern, value, scope)
                if pattern.name:
                    scope.names[pattern.name] = value
            case ast.MatchStar():
                if pattern.name:
                    scope.names[pattern.name] = Many((value,))
            case ast.MatchOr():
                for inner in pattern.patterns:
                    self._match(inner, value, scope)
            case ast.MatchSequence():
                parts = self.items(value)
                for index, inner in enumerate(pattern.patterns):
                    self._match(inner, parts[index] if index < len(parts) else parts[0], scope)
            case ast.MatchMapping():
                for inner in pattern.patterns:
                    self._match(inner, self.items(value)[0], scope)
            case ast.MatchClass():
                for inner in pattern.patterns:
                    self._match(inner, value, scope)
                for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                    self._match(inner, self._attribute(inner, value, name), scope)

    def _assign(self, targets: list[ast.expr], value: Value, scope: Scope) -> None:
        for target in targets:
            if isinstance(target, ast.Name):
                scope.names[target.id] = value
            elif isinstance(target, (ast.Tuple, ast.List)):
                parts = self.items(value)
                exact = isinstance(value, Many) and len(parts) == len(target.elts)
                for index, part in enumerate(target.elts):
                    inner = part.value if isinstance(part, ast.Starred) else part
                    self._assign([inner], parts[index] if exact else parts[0], scope)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value, scope)
                self.evaluate(target.slice, scope)
                if isinstance(owner, Tensor):
                    self.emit("write", "copy_", target)
            elif isinstance(target, ast.Attribute):
                owner = self.evaluate(target.value, scope)
                if isinstance(owner, Tensor) and target.attr == "data":
                    self.emit("write", "set_data", target)

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        value = self.evaluate(node.value, scope)
        load = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node.target)
        ast.fix_missing_locations(load)
        for child in ast.walk(load):
            if isinstance(child, ast.expr):
                child.lineno = node.lineno
        result = self.operator(node.op, self.evaluate(load, scope), value, node)
        if isinstance(node.target, ast.Name):
            scope.names[node.target.id] = result
