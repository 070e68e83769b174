# expect: forward-compute:14
# torch's function as the default of a lambda's argument.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        run = lambda t, f=torch.relu: f(t)
        return run(x)
