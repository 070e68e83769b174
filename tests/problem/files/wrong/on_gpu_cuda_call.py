# expect: cpu-tensors=fail:13
# A tensor is moved to the GPU.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16).cuda()]


def get_init_inputs():
    return []
