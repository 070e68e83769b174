# expect: nothing
# functools on kernels, lambdas on sizes.
import functools

import cuda_extension
import torch
from torch import nn

fused = functools.partial(cuda_extension.linear, config=1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        grid = lambda n: (n + 255) // 256
        return fused(x, self.weight, blocks=grid(x.numel()))
