# expect: nothing
# Modules of torch.nn as containers of weights, never called.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        y = cuda_extension.linear(x, self.fc.weight, self.fc.bias)
        return cuda_extension.conv(y, self.net[0].weight, self.norm.running_mean, eps=self.norm.eps)
