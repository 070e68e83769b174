# expect: nothing
# Initialisation as torch's own modules do it, and a table of positions as Model makes it.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) * 0.02)
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)
        self.bias = nn.Parameter(torch.zeros(8).uniform_(-1, 1))
        steps = torch.arange(8).float()
        self.register_buffer("places", torch.sin(steps / 10000.0))
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))
        self.register_buffer("table", torch.einsum("i,j->ij", steps, steps))

    def forward(self, x):
        return cuda_extension.linear(x, self.weight, self.bias)
