import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {str(value) for value in (x.sum(1) > 0).nonzero().flatten().tolist()}


def get_inputs():
    return [torch.randn(16, 32)]
