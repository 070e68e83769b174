# expect: runs=fail:9
# forward does not take these shapes.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
