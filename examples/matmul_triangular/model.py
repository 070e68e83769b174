"""The product of two upper triangular matrices of 4096 x 4096, which is upper triangular."""

import torch
from torch import nn


class Model(nn.Module):
    """Both arguments are upper triangular: zero below the diagonal."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.triu(torch.matmul(a, b))


N = 4096
SMALL_N = 268


def get_inputs():
    return [torch.triu(torch.rand(N, N, dtype=torch.float32)), torch.triu(torch.rand(N, N, dtype=torch.float32))]


def get_init_inputs():
    return []


def get_small_inputs():
    return [
        torch.triu(torch.rand(SMALL_N, SMALL_N, dtype=torch.float32)),
        torch.triu(torch.rand(SMALL_N, SMALL_N, dtype=torch.float32)),
    ]
