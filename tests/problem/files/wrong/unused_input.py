# expect: uses-inputs=warn
# The second input is never read.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16), torch.randn(8, 16)]


def get_init_inputs():
    return []
