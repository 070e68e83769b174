import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return cuda_extension.matmul(a, b, config=0)
