# expect: forward-compute:9 forward-compute:18
# functools.partial.
import functools

import cuda_extension
import torch
from torch import nn

product = functools.partial(torch.mm, mat2=torch.eye(8))



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return product(x)
