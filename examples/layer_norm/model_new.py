import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple[int, ...]):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)  # holds weight, bias and eps; its forward is not used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.layer_norm(x, self.norm.weight, self.norm.bias, eps=self.norm.eps, config=0)
