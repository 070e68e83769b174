"""A gated unit: y = x * sigmoid(gate), elementwise."""

import torch
from torch import nn

ROWS = 4096
COLUMNS = 4096


class Model(nn.Module):
    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """x, gate: (rows, columns) float32. Returns (rows, columns) float32."""
        return x * torch.sigmoid(gate)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS, dtype=torch.float32), 2 * torch.randn(ROWS, COLUMNS, dtype=torch.float32)]


def get_init_inputs():
    return []


def get_small_inputs():
    # An odd number of elements, so that the last threads have nothing to do.
    return [torch.randn(7, 1001, dtype=torch.float32), 2 * torch.randn(7, 1001, dtype=torch.float32)]
