import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scale: float, pool_size: int):
        super().__init__()
        if pool_size != 4:
            raise ValueError("the kernel is written for a pooling window of 4")
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds the parameters; its forward is not used
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.conv_tanh_pool(x, self.conv.weight, self.conv.bias, self.bias, scale=self.scale, config=0)
