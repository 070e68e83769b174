"""Turns at a quiet GPU while baselines are built: whoever measures on it, or fills it with work, holds one file's lock.

The compiler times its candidates on the GPU and keeps the fastest. Several processes build baselines at once, and the
judge verifies meanwhile; a candidate timed beside their work could lose to a worse one, and a baseline would be
handicapped. So each timing of the compiler takes its turn, and so does the judge with all it does on the GPU. Compiling
itself, most of a build, needs no turn.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Seconds that one process waits for its turns, all together. Then it goes on without, and counts the turns it missed:
# a build must end even where a verification hangs.
PATIENCE = 120.0
_POLL = 0.002


class Quiet:
    """One process's hand on the lock at `path`, which it makes; for one thread at a time.

    waited: seconds spent waiting. held: seconds of its turns. missed: turns taken without the lock, after PATIENCE.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.waited, self.held, self.missed = 0.0, 0.0, 0
        self._patience = patience
        self._depth = 0
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """A turn; one inside another is the same turn."""
        if self._depth == 0 and not self._take():
            self.missed += 1
        self._depth += 1
        begun = time.monotonic()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.held += time.monotonic() - begun
                fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._handle)

    def _take(self) -> bool:
        begun = time.monotonic()
        try:
            while True:
                try:
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    if self.waited + time.monotonic() - begun >= self._patience:
                        return False
                time.sleep(_POLL)
        finally:
            self.waited += time.monotonic() - begun
