# expect: cpu-fallback:16
# NumPy does the work.
import cuda_extension
import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return torch.from_numpy(np.tanh(x.numpy()))
