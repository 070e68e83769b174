# expect: side-effects=fail:14
# get_inputs leaves a file behind.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    x = torch.randn(8, 16)
    torch.save(x, open("side_effect.pt", "wb"))
    return [x]


def get_init_inputs():
    return []
