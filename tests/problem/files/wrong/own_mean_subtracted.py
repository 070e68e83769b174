# expect: meaningful=warn uses-inputs=warn uses-weights=warn
# The mean over an axis of length one is subtracted: always zero.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 1)

    def forward(self, x):
        y = self.lin(x)
        return y - y.mean(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
