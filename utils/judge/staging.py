"""The folder a runner works in: copies of what the solution is made of, and nothing else of the workspace.

    harness/    the runner's own code and the packages it needs
    native.so   the native core
    solution/   model_new.py or solution.py, the built module, and local modules the solution imports
    home/ tmp/  the only places, with the cache, that the runner may write to

The problem file is never among them. The copies belong to the judge and are read-only for the runner, so that what ran
is what was hashed. Compilers' caches (load_inline, Triton) live outside, one folder per content of the solution: a
second run is quick, and no solution can leave anything for another. That folder and its lock are the judge's; the one
below it, `kept`, is the runner's, and whatever a run left there is never followed, written or removed by the judge.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.solution import Solution
from utils.problem.workspace import ROOT

# The parts of the harness that run in the runner's process; what they import comes with them.
_HARNESS = ("judge/bootstrap.py", "judge/runner.py", "native/early.py")
# Sources a single-file solution may compile at run time (torch.utils.cpp_extension.load).
_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".inl")
_MOST_SOURCES = 64 << 20


@dataclass(frozen=True)
class Stage:
    """A prepared folder. `entry` is the staged ModelNew file; `sources` are the folders that were copied from."""

    root: Path
    harness: Path
    native: Path
    solution: Path
    entry: Path
    cache: Path
    sources: tuple[Path, ...]
    digests: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lock: list[int] = field(default_factory=list)  # held while the solution may compile into the cache

    def unlock(self) -> None:
        """Lets another run of the same solution use the cache."""
        while self.lock:
            os.close(self.lock.pop())

    def remove(self) -> None:
        self.unlock()
        # rmtree goes as deep as Python's stack; what a solution left may go deeper.
        subprocess.run(["rm", "-rf", "--", str(self.root)], stderr=subprocess.DEVNULL, check=False)


def prepare(solution: Solution, module: Path | None, native: Path) -> Stage:
    """Copies everything together. `module` is the built extension, `native` the native core's shared object.

    Raises CannotTell when no folder can be found to work in.
    """
    root = Path(tempfile.mkdtemp(prefix="kernel-workbench-", dir=_place()))
    root.chmod(0o755)
    try:
        return _fill(root, solution, module, native)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise


def built_module(folder: Path) -> Path | None:
    """The extension module that the build puts into a workspace, or None when there is none."""
    path = folder / f"cuda_extension{sysconfig.get_config_var('EXT_SUFFIX')}"
    return path if path.is_file() else None


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if sys.version_info >= (3, 11) else _digest(file.read())


def digest_of(paths: list[Path], base: Path) -> str:
    """One digest over several files: their names relative to `base` and their contents, in sorted order."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        name = path.relative_to(base) if path.is_relative_to(base) else Path(path.name)
        whole.update(f"{name}\0{digest(path)}\n".encode())
    return whole.hexdigest()


def harness_digest() -> str:
    """One digest over every Python, shell and C++ file of the harness."""
    suffixes = (".py", ".sh", ".cpp", ".cu", ".cuh", ".h")
    files = [
        path for path in (ROOT / "utils").rglob("*") if path.suffix in suffixes and "__pycache__" not in path.parts
    ]
    files += [path for path in (ROOT / "binding.cpp", ROOT / "binding_registry.h") if path.is_file()]
    return digest_of(files, ROOT)


def _fill(root: Path, solution: Solution, module: Path | None, native: Path) -> Stage:
    harness, folder = root / "harness", root / "solution"
    folder.mkdir()
    for name in ("home", "tmp"):
        (root / name).mkdir()
    for part in _harness_files():
        target = harness / part.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(part, target)
    copied_native = root / "native.so"
    shutil.copyfile(native, copied_native)
    entry = folder / solution.path.name
    shutil.copyfile(solution.path, entry)
    digests = {"solution": digest_of(solution.source_files(), solution.path.parent)}
    files, notes = local_modules(solution.path)
    if solution.kind != "extension":
        files += _compilable(solution.path.parent)
    for path in files:
        target = folder / path.relative_to(solution.path.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    if module is not None:
        target = folder / f"cuda_extension{sysconfig.get_config_var('EXT_SUFFIX')}"
        shutil.copyfile(module, target)
        digests["module"] = digest(target)
    cache = _cache(
        digest_of([entry, *(folder / path.relative_to(solution.path.parent) for path in files)], folder), root
    )
    lock = _locked(cache) if solution.kind == "load_inline" else []
    sources = {solution.path.parent} | ({solution.workspace.root} if solution.workspace else set())
    for path in (root, *root.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        else:
            path.chmod(0o644 if path.suffix != ".so" else 0o755)
    return Stage(
        root, harness, copied_native, folder, entry, cache, tuple(sorted(sources)), digests, tuple(notes), lock
    )


def _harness_files() -> list[Path]:
    """The runner's files and, through their imports at the top of the file, everything of this package they need."""
    found: dict[Path, None] = {}
    queue = [ROOT / "utils" / part for part in _HARNESS]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found[path] = None
        for parent in path.relative_to(ROOT).parents:
            package = ROOT / parent / "__init__.py"
            if parent.name and package.is_file():
                queue.append(package)
        for node in ast.parse(path.read_bytes()).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                file = ROOT / Path(*name.split(".")).with_suffix(".py")
                package = ROOT / Path(*name.split(".")) / "__init__.py"
                queue += [place for place in (file, package) if name.split(".")[0] == "utils" and place.is_file()]
    return sorted(found)


def local_modules(path: Path) -> tuple[list[Path], list[str]]:
    """Python files beside `path` that it imports, directly or through one another, and notes on names that clash.

    Python itself would prefer a file beside the program to an installed package; here the installed one wins, so that
    a file called torch.py cannot stand in for torch. The notes name files that lost this way.
    """
    folder = path.parent
    found: dict[Path, None] = {}
    notes: list[str] = []
    queue = [path]
    while queue:
        current = queue.pop()
        for name in sorted(_imported(current)):
            top = name.split(".")[0]
            here = [folder / f"{top}.py", folder / top / "__init__.py"]
            if top in ("cuda_extension", "model") or not any(file.is_file() for file in here):
                continue
            if _installed(top, folder):
                notes.append(
                    f"{current.name} imports {top}, and gets the installed one: rename {here[0].name} beside "
                    "it if that was meant"
                )
                continue
            files = [here[0]] if here[0].is_file() else sorted((folder / top).rglob("*.py"))
            for file in files:
                if file != path and file not in found and not file.is_symlink():
                    found[file] = None
                    queue.append(file)
    return list(found), sorted(set(notes))


def _imported(path: Path) -> set[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names


def _installed(name: str, folder: Path) -> bool:
    """Whether `name` is a module of the interpreter or an installed package, whatever lies in `folder`."""
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return True
    elsewhere = [entry for entry in sys.path if entry and Path(entry).resolve() not in (folder, ROOT)]
    found = importlib.machinery.PathFinder.find_spec(name, elsewhere)
    return found is not None and found.origin is not None


def _compilable(folder: Path) -> list[Path]:
    """Sources beside a single-file solution that it may compile itself."""
    places = [folder, folder / "kernels", folder / "csrc", folder / "include"]
    files = [path for place in places if place.is_dir() for path in sorted(place.iterdir())]
    files = [path for path in files if path.suffix in _SOURCES and path.is_file() and not path.is_symlink()]
    return files if sum(path.stat().st_size for path in files) <= _MOST_SOURCES else []


def _place() -> Path:
    """A folder for temporary files from which shared objects may be loaded."""
    places = [Path(tempfile.gettempdir()), Path("/var/tmp"), home_folder() / ".cache", Path.cwd()]
    for place in places:
        try:
            if os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_NOEXEC:
                return place.resolve()
        except OSError:
            continue
    raise CannotTell("no temporary folder can be written and executed from; set TMPDIR to one that can")


def _cache(content: str, root: Path) -> Path:
    """The cache folder for a solution of this content, this interpreter and torch; private where none can be kept.

    Only the folder above it is written to here: what lies inside may be links that an earlier run left.
    """
    spec = importlib.util.find_spec("torch")
    torch_version = Path(spec.origin).with_name("version.py").read_bytes() if spec and spec.origin else b""
    key = hashlib.sha256(json.dumps([content, sys.version, _digest(torch_version), os.geteuid()]).encode()).hexdigest()[
        :32
    ]
    base = Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache") / "kernel-workbench" / "compiled"
    for folder in (base / key, root / "cache"):
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                continue
            with tempfile.TemporaryFile(dir=folder):
                pass
            kept = folder / "kept"
            with contextlib.suppress(FileExistsError):
                kept.mkdir(mode=0o755)
            if stat.S_ISDIR(kept.lstat().st_mode):
                return kept
        except OSError:
            continue
    raise CannotTell(f"cannot write to {root}; set TMPDIR to a folder with free space")


def runner_build_folder(solution: Solution) -> Path:
    """Where the runner builds a single-file solution: the extensions folder in the cache of what `prepare` copies."""
    folder = solution.path.parent
    files = [solution.path, *local_modules(solution.path)[0], *_compilable(folder)]
    with tempfile.TemporaryDirectory() as private:  # where no cache can be kept, nothing was kept
        return _cache(digest_of(files, folder), Path(private)) / "torch_extensions"


def _locked(cache: Path) -> list[int]:
    """Waits until no other run compiles into this cache. The bootstrap then clears what an interrupted one left."""
    fd = os.open(cache.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return [fd]


def home_folder() -> Path:
    """The judge's home, or the root folder for a user that has none."""
    home = os.path.expanduser("~")
    return Path("/") if home == "~" else Path(home)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
