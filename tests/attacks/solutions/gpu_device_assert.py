"""C24: an assertion fails on the device.

Method: none.
Problem: twice
Expect: FAIL gpu_fault ("crashed the GPU context")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 8)
