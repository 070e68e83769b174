# The problem beside the solutions of this folder: what its constructor does, theirs may do.
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))
        self.register_buffer("table", torch.einsum("i,j->ij", torch.arange(8.0), torch.arange(8.0)))

    def forward(self, x):
        return x @ self.weight + self.bias


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
