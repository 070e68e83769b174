# expect: meaningful=warn acts=warn:13 uses-inputs=warn uses-weights=warn
# The shift takes everything below zero, so relu gives nothing.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(64, 32)

    def forward(self, x):
        return torch.relu((self.lin(x) - 2.0) * 1.5)


def get_inputs():
    return [torch.rand(8, 64)]


def get_init_inputs():
    return []
