# expect: model-class=fail:7
# The class is not named Model.
import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
