"""Whether the problem and the workbench are still what they were before anything of a solution ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from utils.judge.sandbox import Layers
from utils.judge.staging import digest, harness_digest
from utils.present.outcome import CannotTell


class Untouched:
    """Takes their digests. To be made before the first solution is imported, and settled at the end.

    digests: "harness" and "problem", SHA-256 in hexadecimal.
    """

    def __init__(self, problem: Path) -> None:
        self._problem = problem
        self.digests = {"harness": harness_digest(), "problem": digest(problem)}

    def settle(self, layers: Layers, warn: Callable[[str], None]) -> None:
        """Warns in one sentence where something changed. Raises CannotTell where the solution may have done it.

        Where a sandbox of these `layers` kept it from writing there, somebody else did: what was found is about what
        was read then. Where nothing did, nothing can be said.
        """
        changed = []
        if not self._problem.is_file() or digest(self._problem) != self.digests["problem"]:
            changed.append(str(self._problem))
        if harness_digest() != self.digests["harness"]:
            changed.append("a file of the workbench")
        if not changed:
            return
        if "private file system" in layers.had or "file access by Landlock" in layers.had:
            warn(f"{' and '.join(changed)} changed meanwhile; the verdict is about the state before")
            return
        raise CannotTell(
            f"{' and '.join(changed)} changed while the solution ran, and nothing kept the solution from doing it: no "
            "verdict; put the file right, and run again with the sandbox"
        )
