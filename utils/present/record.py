"""The JSON record each command writes with --json: one envelope, versioned, the same for all.

schema       "workbench/<command>/<version>"; the version rises when a field changes its meaning
verdict      the command's own word (PASS, FAIL, FASTER, BUILT, ...)
exit_code    0 yes, 1 no, 2 cannot tell
reasons      sentences, the most important first
simulated    true when no GPU was involved in the verdict
settings     every option in force, defaults included
environment  machine, versions, digests
results      the command's own measurements, documented in docs/formats.md
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.present.outcome import CannotTell
from utils.present.visible import encodable

VERSION = 1


def envelope(
    command: str,
    verdict: str,
    exit_code: int,
    reasons: Sequence[str] = (),
    *,
    simulated: bool = False,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    results: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record as a dict ready for `write`."""
    return {
        "schema": f"workbench/{command}/{VERSION}",
        "verdict": verdict,
        "exit_code": exit_code,
        "reasons": list(reasons),
        "simulated": simulated,
        "settings": dict(settings or {}),
        "environment": dict(environment or {}),
        "results": dict(results or {}),
    }


def plain(value: Any) -> Any:
    """`value` with what strict JSON lacks replaced: NaN and infinities become strings, paths strings, tuples lists.

    Halves of surrogate pairs are written out: strict readers refuse them.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    return encodable(str(value))


def write(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Writes `record` to `path` whole or not at all. Raises CannotTell when the place cannot be written."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(plain(record), file, indent=2, allow_nan=False)
            file.write("\n")
        # mkstemp makes private files; a report is as readable as any other file of its owner.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except OSError as error:
        raise CannotTell(
            f"cannot write the JSON record to {target}: {error.strerror}; give --json a writable place"
        ) from None
