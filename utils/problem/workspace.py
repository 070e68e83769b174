"""A workspace: the folder with model.py, model_new.py and kernels/ that every command works on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from utils.present.outcome import CannotTell

# The repository: the harness, the fixed files of the extension, and itself the first workspace.
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Workspace:
    """Paths of one workspace; none but `root` need exist."""

    root: Path

    @property
    def model(self) -> Path:
        return self.root / "model.py"

    @property
    def model_new(self) -> Path:
        return self.root / "model_new.py"

    @property
    def kernels(self) -> Path:
        return self.root / "kernels"

    @property
    def build(self) -> Path:
        """Everything the build writes but the module itself and compile_commands.json."""
        return self.root / "build"


def find_workspace(folder: str | Path | None = None) -> Workspace:
    """The workspace in `folder` (the repository's own by default). Raises CannotTell where there is no such folder."""
    root = ROOT if folder is None else Path(folder).expanduser().resolve()
    if not root.is_dir():
        raise CannotTell(
            f"the workspace {root} is not a folder; give --workspace a folder with model.py, model_new.py and kernels/"
        )
    return Workspace(root)
