# expect: forward-compute:15 forward-compute:16
# A class pattern reads the attribute.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        match x:
            case object(relu=f):
                return f()
