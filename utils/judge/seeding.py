"""One way to seed every generator, used alike on both sides."""

from __future__ import annotations

import random
import sys

import torch

_manual_seed = torch.manual_seed


def seed_everything(seed: int) -> None:
    """Seeds torch on every device, Python's random, and numpy where it is loaded. `seed` is below 2**63."""
    _manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))
