# expect: acts=warn:13
# After relu nothing is negative: the second activation cannot act, whatever the input.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 32)

    def forward(self, x):
        return nn.functional.leaky_relu(torch.relu(self.lin(x)), 0.01)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
