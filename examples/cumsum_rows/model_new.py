import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.cumsum_rows(x, config=0)
