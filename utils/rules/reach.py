"""A solution minds its own business: it does not run the reference, and it does not reach into what judges it."""

from __future__ import annotations

import ast

from utils.rules.python_reading import Reader
from utils.rules.python_values import Class, Instance, LocalModule, Name, PythonFile
from utils.rules.rule import Violation, rule

REFERENCE = rule(
    "reference",
    "ModelNew does not use Model: not by import, not as a base class, not by reading model.py",
    "imports and file names in the solution's Python",
    "write ModelNew on its own; copy the constructor's parameters, not the class",
    policy=False,
)
REACH = rule(
    "reach",
    "a solution changes nothing outside itself and looks at nothing of its caller's",
    "assignments to attributes of imported modules, imports of the workbench, stack frames, gc, threads and processes",
    "remove it: results depend on the arguments of forward and on the weights only",
    policy=False,
)

_FORBIDDEN = {
    "gc.get_objects": "it searches the interpreter's objects",
    "gc.get_referrers": "it searches the interpreter's objects",
    "inspect.stack": "it looks at its caller's frames",
    "inspect.currentframe": "it looks at its caller's frames",
    "sys._getframe": "it looks at its caller's frames",
    "sys._current_frames": "it looks at its caller's frames",
    "sys.settrace": "it traces its caller",
    "sys.setprofile": "it traces its caller",
    "threading.Thread": "it starts a thread",
    "threading.Timer": "it starts a thread",
    "_thread.start_new_thread": "it starts a thread",
    "concurrent.futures.ThreadPoolExecutor": "it starts threads",
    "concurrent.futures.ProcessPoolExecutor": "it starts processes",
    "multiprocessing.Process": "it starts a process",
    "multiprocessing.Pool": "it starts processes",
    "torch.multiprocessing.Process": "it starts a process",
    "torch.multiprocessing.spawn": "it starts processes",
    "os.fork": "it starts a process",
    "os._exit": "it ends the process",
    "os.system": "it starts a process",
    "os.kill": "it signals a process",
    "subprocess.run": "it starts a process",
    "subprocess.Popen": "it starts a process",
    "subprocess.check_output": "it starts a process",
    "subprocess.call": "it starts a process",
    "ctypes.CDLL": "it loads a library by hand",
    "ctypes.cdll": "it loads a library by hand",
    "ctypes.pythonapi": "it reaches into the interpreter",
}


def reference_violations(reader: Reader) -> list[Violation]:
    found = []
    for file in list(reader.files.values()):
        if file.path.name == "model.py":
            continue
        for node in ast.walk(file.tree):
            said = None
            if (isinstance(node, ast.Import) and any(alias.name.split(".")[-1] == "model" for alias in node.names)) or (
                (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "model")
                or (
                    isinstance(node, ast.ImportFrom)
                    and node.level
                    and any(alias.name == "model" for alias in node.names)
                )
            ):
                said = "the solution imports model.py"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _names_model_file(node.value):
                said = "the solution names the file model.py"
            if said:
                found.append(_violation(REFERENCE.id, said, file, node))
    return found


def reach_violations(reader: Reader) -> list[Violation]:
    found = []
    for _, path, where, line in reader.references:
        if path in _FORBIDDEN:
            found.append(Violation(REACH.id, f"{_FORBIDDEN[path]} ({path})", where, line, path, REACH.mend))
        elif path.split(".")[0] == "utils":
            found.append(Violation(REACH.id, f"it uses the workbench itself ({path})", where, line, path, REACH.mend))
    for file in list(reader.files.values()):
        if file.path.name != "model.py":
            found += _patches(reader, file)
    unique: dict[tuple, Violation] = {}
    for violation in found:
        unique.setdefault((violation.path, violation.line), violation)
    return list(unique.values())


def _patches(reader: Reader, file: PythonFile) -> list[Violation]:
    """Assignments and setattr on attributes of imported modules and of their classes; flags of torch are settings."""
    found = []
    reader.file = file
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "utils":
            found.append(_violation(REACH.id, f"it uses the workbench itself ({node.module})", file, node))
        elif isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "utils" for alias in node.names):
            found.append(_violation(REACH.id, "it uses the workbench itself (utils)", file, node))
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "setattr"
            and len(node.args) >= 2
        ):
            label = node.args[1]
            name = label.value if isinstance(label, ast.Constant) and isinstance(label.value, str) else "attribute"
            targets = [ast.copy_location(ast.Attribute(node.args[0], name, ast.Store()), node)]
        for target in targets:
            if isinstance(target, ast.Attribute):
                path = _path(reader, target, file)
                if path and not path.startswith(
                    (
                        "torch.backends.",
                        "torch._dynamo.config",
                        "torch._inductor.config",
                        "os.environ",
                        "cuda_extension.",
                    )
                ):
                    found.append(_violation(REACH.id, f"it replaces {path}", file, node))
            elif isinstance(target, ast.Subscript):
                path = _path(reader, target.value, file)
                if path == "sys.modules":
                    found.append(_violation(REACH.id, "it replaces a module in sys.modules", file, node))
    return found


def _path(reader: Reader, node: ast.expr, file: PythonFile) -> str | None:
    """The dotted name of an imported thing that `node` is an attribute of, or None."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = reader.quietly(node.value, file.scope)
    if isinstance(owner, Name):
        return f"{owner.path}.{node.attr}"
    if isinstance(owner, (LocalModule, Class, Instance)):
        return None
    return None


def _names_model_file(value: str) -> bool:
    return value == "model.py" or value.endswith("/model.py")


def _violation(rule_id: str, sentence: str, file: PythonFile, node: ast.AST) -> Violation:
    words = " ".join(ast.unparse(node).split())
    mend = REFERENCE.mend if rule_id == REFERENCE.id else REACH.mend
    return Violation(rule_id, sentence, file.path, getattr(node, "lineno", None), words[:90], mend)
