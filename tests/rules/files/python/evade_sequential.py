# expect: forward-compute:14
# A Sequential of modules of torch.nn.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward(self, x):
        return self.net(x)
