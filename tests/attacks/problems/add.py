import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a + 2 * b


def get_inputs():
    return [torch.randn(40, 64), torch.randn(40, 64)]
