# expect: reach:17
# The interpreter's objects are searched.
import gc

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return [o for o in gc.get_objects() if torch.is_tensor(o)][0]
