# expect: nothing
# Words only: torch.matmul in a comment, F.relu in a docstring, "x @ w" in a string.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        """Computes torch.nn.functional.linear(x, w), that is x @ w.T + b."""
        # torch.matmul(x, w) would do the same
        assert x.dim() == 2, "x @ w needs two dimensions; see torch.nn.Conv3d"
        return cuda_extension.linear(x, self.weight, self.bias)
