import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1e-3 * torch.sin(3 * x)


def get_inputs():
    return [torch.randn(64, 64)]
