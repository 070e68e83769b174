import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return cuda_extension.gated_forward(x, gate, config=0)
