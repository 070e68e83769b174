"""Numbers of the command lines: what each kind may be, said in one sentence when it is not (argparse's `type=`)."""

from __future__ import annotations

import argparse


def positive(text: str) -> float:
    """A finite number above 0: seconds, a ratio, a size."""
    value = _number(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 (and below a million)")
    return value


def count(text: str) -> int:
    """How many of something."""
    value = _number(text)
    if not (1 <= value <= 1000 and value.is_integer()):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 1000")
    return int(value)


def seed(text: str) -> int:
    """What repeats a run's random draws."""
    # Not by way of a float, which holds no more than 53 of its bits.
    value = int(text) if text.strip().isdecimal() else -1
    if not 0 <= value < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text} is not a seed: give a whole number from 0 to 2^62 - 1")
    return value


def tolerance(text: str) -> float:
    """atol or rtol."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a tolerance: give a finite number, 0 or more")
    return value


def _number(text: str) -> float:
    """NaN, which no range holds, for what is no number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
