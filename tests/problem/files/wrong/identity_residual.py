# expect: meaningful=warn
# What is added to the input is far below the tolerance.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 16)

    def forward(self, x):
        return x + 1e-4 * self.lin(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
