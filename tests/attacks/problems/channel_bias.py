import torch
import torch.nn as nn


class Model(nn.Module):
    """Outputs that hardly move within a channel."""

    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.randn(6, 1, 1) * 10)

    def forward(self, x):
        return self.level + 2e-3 * x


def get_inputs():
    return [torch.randn(4, 6, 8, 8)]


def get_init_inputs():
    return []
