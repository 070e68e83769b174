# expect: internals:3 internals:17 forward-compute:17
# torch's dispatch modes are disabled around compute that vars(torch) gives.
from torch.utils._python_dispatch import _disable_current_modes

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        with _disable_current_modes():
            return vars(torch)["re" + "lu"](x)
