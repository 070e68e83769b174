# expect: forward-compute:17
# Modules of torch.nn in a list filled in a loop.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(2):
            self.layers.append(nn.Linear(8, 8))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
