# expect: hidden-code:12
# ModelNew is made by type().
import cuda_extension
import torch
from torch import nn


def forward(self, x):
    return cuda_extension.f(torch.relu(x))


ModelNew = type("ModelNew", (nn.Module,), {"forward": forward})
