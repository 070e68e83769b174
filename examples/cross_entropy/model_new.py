import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return cuda_extension.cross_entropy(logits, targets, config=0)
