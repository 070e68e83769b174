# expect: nothing
# Every way to make a tensor.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        zero = torch.zeros(8, device=x.device)
        one = x.new_ones(8)
        like = torch.empty_like(x)
        held = torch.tensor([1.0, 2.0], device=x.device)
        full = torch.full((8,), 2.0, device=x.device)
        return cuda_extension.many(zero, one, like, held, full, torch.arange(8, device=x.device))
