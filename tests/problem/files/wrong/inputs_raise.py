# expect: get-inputs=fail:13
# get_inputs itself fails.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, -16)]


def get_init_inputs():
    return []
