"""The product of two square matrices of 4096 x 4096."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


M = 4096
K = 4096
N = 4096


def get_inputs():
    return [torch.rand(M, K, dtype=torch.float32), torch.rand(K, N, dtype=torch.float32)]


def get_init_inputs():
    return []


def get_small_inputs():
    return [torch.rand(37, 129, dtype=torch.float32), torch.rand(129, 70, dtype=torch.float32)]
