"""How a command ends: the exit codes every command shares, and the exceptions that carry them.

0 yes, 1 no, 2 cannot tell. A command's `main` returns one of them, or raises `No` or `CannotTell` with one clear
sentence (what, where, what to do), which `run` prints without a traceback. Any other exception is a defect of the
workbench: it is shown whole, and ends with 2 too, so that a crash can never be read as a verdict.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence

YES = 0
NO = 1
CANNOT_TELL = 2


class Outcome(Exception):
    """Ends a command early with `code`; the message is one sentence for a person."""

    code = CANNOT_TELL


class No(Outcome):
    """The question was answered, and the answer is no."""

    code = NO


class CannotTell(Outcome):
    """The question could not be put: bad arguments, a missing file, an environment that is not fit."""

    code = CANNOT_TELL


def run(main: Callable[[Sequence[str]], int]) -> None:
    """Calls `main(argv)` and exits the process with its code; the last line of every command module."""
    try:
        code = main(sys.argv[1:])
    except Outcome as outcome:
        print(f"{'error' if outcome.code == CANNOT_TELL else 'no'}: {outcome}", file=sys.stderr)
        code = outcome.code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader of our output (`| head`) went away: nobody is left to tell.
        sys.stderr.close()
        code = CANNOT_TELL
    except Exception as error:
        from utils.present import missing

        said = missing.sentence(error)
        if said is None:
            traceback.print_exc()
            said = "the workbench itself failed; nothing was decided. Please report the traceback above."
        print(f"error: {said}", file=sys.stderr)
        code = CANNOT_TELL
    _leave(code)


def _leave(code: int) -> None:
    """What sys.exit does, but for taking torch apart piece by piece, which a person would wait a second for."""
    if "torch" not in sys.modules:
        sys.exit(code)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        if not sys.stderr.closed:
            sys.stderr.flush()
        sys.stdout.flush()
    except OSError:
        # What was to be told was not: nobody reads, or the disk is full.
        code = CANNOT_TELL
    os._exit(code)
