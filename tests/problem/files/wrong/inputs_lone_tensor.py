# expect: get-inputs=warn:14
# A tensor on its own where a list belongs.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    x = torch.randn(8, 16)
    return x


def get_init_inputs():
    return []
