# expect: hidden-code:17
# Code made from bytes.
import marshal
import types

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return types.FunctionType(marshal.loads(b"code"), {})(x)
