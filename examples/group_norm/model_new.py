import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)  # holds weight, bias and eps; its forward is not used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        return cuda_extension.group_norm(x, norm.weight, norm.bias, groups=norm.num_groups, eps=norm.eps, config=0)
