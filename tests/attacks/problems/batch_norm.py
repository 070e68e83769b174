import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [3 * torch.randn(64, 8) + 5]


def get_init_inputs():
    return [8]
