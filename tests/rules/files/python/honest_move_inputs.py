# expect: nothing
# cuda() as the founding document's example has it: a guard that does nothing on the GPU.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.linear(x.cuda(), self.weight.cuda(), self.bias.to(x.device))
