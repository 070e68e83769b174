# expect: hidden-code:14
# The name is not in the text.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = open(__file__).read()[-5:-1]

    def forward(self, x):
        return getattr(torch, self.name)(x, self.weight)
