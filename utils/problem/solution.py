"""The layouts a solution may have, told apart by reading the file, never by running it.

extension     model_new.py beside kernels/, importing the built module cuda_extension
load_inline   one solution.py that builds its kernels with torch.utils.cpp_extension.load_inline (or load)
triton        one solution.py with @triton.jit kernels
python        none of these: a ModelNew in Python alone
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.workspace import Workspace

KINDS = ("extension", "load_inline", "triton", "python")


@dataclass(frozen=True)
class Solution:
    """One solution: its kind (one of KINDS), the Python file with ModelNew, and the workspace it lives in, if any."""

    kind: str
    path: Path
    workspace: Workspace | None

    def source_files(self) -> list[Path]:
        """Every file that makes up the solution, sorted: the Python file and, for an extension, all of kernels/."""
        files = [self.path]
        if self.kind == "extension" and self.workspace is not None and self.workspace.kernels.is_dir():
            files += [
                path for path in self.workspace.kernels.rglob("*") if path.is_file() and "__pycache__" not in path.parts
            ]
        return sorted(files)


def find_solution(workspace: Workspace | None, solution_path: str | Path | None = None) -> Solution:
    """The solution at `solution_path`, or the workspace's model_new.py, or else its solution.py.

    A file given on its own belongs to a workspace when it is that workspace's model_new.py, or when `kernels/` lies
    beside it. Raises CannotTell when there is none or when it is not Python.
    """
    if solution_path is not None:
        path = Path(solution_path).expanduser().resolve()
    elif workspace is None:
        raise CannotTell("no solution was named; give --solution FILE or --workspace DIR")
    else:
        path = workspace.model_new
        alone = workspace.root / "solution.py"
        if not path.is_file() and alone.is_file():
            path = alone
    if not path.is_file():
        raise CannotTell(f"there is no solution at {path}; write one, or give --solution FILE")
    kind = kind_of(path)
    home = workspace
    if home is None or path.parent != home.root:
        home = Workspace(path.parent) if (path.parent / "kernels").is_dir() or kind == "extension" else None
    return Solution(kind, path, home)


def kind_of(path: Path) -> str:
    """Which of KINDS the Python file at `path` is. Raises CannotTell with the line when it is not valid Python."""
    tree = parse(path)
    imports = _imports(tree)
    if "cuda_extension" in imports:
        return "extension"
    if "torch.utils.cpp_extension" in imports:
        return "load_inline"
    if "triton" in imports:
        return "triton"
    return "python"


def parse(path: Path) -> ast.Module:
    """The syntax tree of the Python file at `path`. Raises CannotTell when it cannot be read or is not Python."""
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from None
    except SyntaxError as error:
        raise CannotTell(f"{path.name}:{error.lineno}: not valid Python: {error.msg}") from None
    except ValueError as error:
        raise CannotTell(f"{path.name}: not valid Python: {error}") from None


def _imports(tree: ast.Module) -> set[str]:
    """The modules a file imports, with every parent, wherever the statement stands."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in found:
            parts = name.split(".")
            names.update(".".join(parts[: end + 1]) for end in range(len(parts)))
    # `import torch.utils.cpp_extension as c` and `torch.utils.cpp_extension.load(...)` after `import torch` both count.
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "cpp_extension":
            names.add("torch.utils.cpp_extension")
    return names
