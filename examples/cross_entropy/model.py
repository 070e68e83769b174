"""Cross entropy loss of 32768 rows of 4096 logits against integer targets, averaged."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits, targets)


ROWS = 32768
CLASSES = 4096


def draw(rows: int, classes: int) -> list[torch.Tensor]:
    # Logits far from uniform, and a spread drawn anew for each call: with small logits every input has the loss
    # log(classes), and a constant would pass.
    spread = 2.0 + 4.0 * torch.rand(1, dtype=torch.float32)
    logits = torch.randn(rows, classes, dtype=torch.float32).mul_(spread)
    return [logits, torch.randint(0, classes, (rows,), dtype=torch.int64)]


def get_inputs():
    return draw(ROWS, CLASSES)


def get_init_inputs():
    return []


def get_small_inputs():
    return draw(37, 1003)
