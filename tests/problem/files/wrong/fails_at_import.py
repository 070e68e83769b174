# expect: python=fail:6
# The file raises when it is imported.
import torch
import torch.nn as nn

SIZES = [4, 8][2]

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
