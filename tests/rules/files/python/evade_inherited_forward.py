# expect: forward-compute:13
# ModelNew is an nn.Linear.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Linear):
    def __init__(self):
        super().__init__(8, 8)

    def forward(self, x):
        return super().forward(x)
