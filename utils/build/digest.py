"""The digest that ties a built module to its sources: `__build__["sources_sha256"]` equals it while fresh."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from utils.build.sources import tracked_files
from utils.problem.workspace import Workspace


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes in hex; "" when it cannot be read."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()
    except OSError:
        return ""


def sources_digest(workspace: Workspace) -> str:
    """SHA-256 over names and contents of all sources and headers of the workspace's module (see sources.tracked_files).

    A file that changes, appears in kernels/, goes or is renamed changes it; touching a file does not.
    """
    return digest_of(tracked_files(workspace))


def digest_of(files: dict[str, Path]) -> str:
    """SHA-256 over (name, content) pairs, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{file_sha256(files[name])}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
