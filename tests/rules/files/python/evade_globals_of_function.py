# expect: internals:12
# The namespace of somebody else's function, its name in pieces.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        getattr(type(self).forward, "__glo" + "bals__")["Recorder"] = None

    def forward(self, x):
        return cuda_extension.f(x)
