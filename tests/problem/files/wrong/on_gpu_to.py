# expect: cpu-tensors=fail:14
# A tensor is moved to the GPU by to().
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    x = torch.randn(8, 16)
    return [x.to("cuda:0")]


def get_init_inputs():
    return []
