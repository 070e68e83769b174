# expect: acts=warn:13
# The result of the layer is small, the limits are far.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(64, 32)

    def forward(self, x):
        y = nn.functional.hardtanh(self.lin(x) * 0.5, -2, 2)
        return nn.functional.gelu(y)


def get_inputs():
    return [torch.rand(8, 64)]


def get_init_inputs():
    return []
