import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)  # holds weight and bias; its forward is not used
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.linear_silu_scale(x, self.linear.weight, self.linear.bias, scale=self.scale, config=0)
