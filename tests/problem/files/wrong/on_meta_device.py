# expect: cpu-tensors=fail:13
# A tensor without memory.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16, device="meta")]


def get_init_inputs():
    return []
