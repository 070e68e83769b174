# expect: hidden-code:16
# Code from a pickle in forward.
import pickle

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return pickle.loads(b"ctorch\nrelu\n.")(x)
