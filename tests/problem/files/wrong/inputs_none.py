# expect: get-inputs=fail:12
# The return statement is missing.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    x = torch.randn(8, 16)


def get_init_inputs():
    return []
