"""One way to run a solution, whatever its layout: the class ModelNew of a Solution.

This runs the solution's own code, so only the process that exists for it (the judge's runner, or a person's own
session) calls `load_model_new`.

- An extension is loaded from its exact path before model_new.py runs: nothing else that happens to be importable as
  `cuda_extension` can take its place.
- load_inline builds go to a folder named after the content of the solution, the torch and the target architectures:
  an unchanged solution is built once, two solutions may use the same extension name, and an edited one is never
  answered with its old build.
- Triton kernels need a real source file; every layout is run from the file itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from utils.build.storage import cache_folder
from utils.present.outcome import CannotTell
from utils.problem.problem import run_file
from utils.problem.solution import Solution
from utils.problem.workspace import Workspace

if TYPE_CHECKING:
    from torch import nn


def load_model_new(solution: Solution, extension: Path | None = None) -> type[nn.Module]:
    """The class ModelNew of `solution`, its kernels loaded or built.

    `extension` overrides the workspace's built module (the simulator's, say). Raises CannotTell with one sentence
    when the module is not built or does not load, when the file does not run, or when it has no ModelNew.
    """
    from torch import nn

    # Helpers beside the solution can be imported, but come last: a torch.py in a workspace must not become torch.
    folder = str(solution.path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    if solution.kind == "extension":
        _load_extension(extension or module_path(solution.workspace or Workspace(solution.path.parent)))
    with inline_builds(solution) if solution.kind == "load_inline" else nullcontext():
        module = run_file(solution.path, "solution")
    found = getattr(module, "ModelNew", None)
    if found is None:
        raise CannotTell(
            f"{solution.path.name} defines no class named ModelNew; name the optimised module exactly ModelNew"
        )
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise CannotTell(f"ModelNew in {solution.path.name} is not a subclass of torch.nn.Module")
    return found


def module_path(workspace: Workspace) -> Path:
    """Where the workspace's built module lies, whether or not it is there yet."""
    return workspace.root / f"cuda_extension{sysconfig.get_config_var('EXT_SUFFIX')}"


def inline_build_folder(solution: Solution) -> Path:
    """Where torch builds this solution's inline extensions; the name changes with anything the build depends on."""
    import torch

    cache = cache_folder()
    if cache is None:
        raise CannotTell("no writable cache folder: set XDG_CACHE_HOME to a folder you can write to")
    key = hashlib.sha256(solution.path.read_bytes())
    for part in (
        str(solution.path.parent),  # sources read from files beside the solution: ninja watches those
        torch.__version__,
        str(torch.version.cuda),
        sys.version,
        os.environ.get("TORCH_CUDA_ARCH_LIST", ""),
        os.environ.get("CXX", ""),
    ):
        key.update(b"\0" + part.encode())
    return cache / "inline" / key.hexdigest()[:24]


@contextmanager
def inline_builds(solution: Solution) -> Iterator[Path]:
    """While open, torch.utils.cpp_extension builds into the solution's own folder, one process at a time."""
    folder = inline_build_folder(solution)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    changed = {"TORCH_EXTENSIONS_DIR": str(folder), "PATH": os.environ.get("PATH", "")}
    # ninja is installed beside the interpreter, which need not be on PATH (sudo, a virtual environment by its path).
    changed["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{changed['PATH']}"
    before = {name: os.environ.get(name) for name in changed}
    with open(folder.with_suffix(".lock"), "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        # Under our own lock nobody can be building here, so a lock file of torch's is a dead process's: torch would
        # wait for it for ever.
        for stale in folder.glob("*/lock"):
            stale.unlink(missing_ok=True)
        os.environ.update(changed)
        try:
            yield folder
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _load_extension(path: Path) -> None:
    if not path.is_file():
        raise CannotTell(
            f"{path.name} is not built in {path.parent}; run: bash utils/compile.sh --workspace {path.parent}"
        )
    loader = importlib.machinery.ExtensionFileLoader("cuda_extension", str(path))
    spec = importlib.util.spec_from_loader("cuda_extension", loader, origin=str(path))
    assert spec is not None
    try:
        import torch  # noqa: F401  the extension's symbols live in torch's libraries

        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise CannotTell(
            f"{path.name} does not load: {' '.join(str(error).split())}; rebuild it: bash utils/compile.sh"
        ) from error
    sys.modules["cuda_extension"] = module
