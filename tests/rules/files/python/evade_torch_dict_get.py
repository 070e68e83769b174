# expect: internals:14 forward-compute:14
# torch's namespace as a table, asked with get.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.__dict__.get("relu")(x)
