# expect: nothing
# Tuning tables by shape.
import cuda_extension
import torch
from torch import nn

CONFIGS = {(8, 8): 2, (1024, 1024): 3}
num_stages = 2


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        config = CONFIGS.get((x.shape[0], x.shape[1]), 0) if x.shape[0] > 4 else 1
        return cuda_extension.linear(x, self.weight, self.bias, config=config)
