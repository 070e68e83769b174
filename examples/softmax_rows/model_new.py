import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return cuda_extension.softmax_rows(logits, config=0)
