import torch
from torch import nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return cuda_extension.attention_causal(query, key, value, config=0)
