"""C24: writes far outside of any allocation.

Method: none; the context is lost, and nobody else is to blame.
Problem: twice
Expect: FAIL gpu_fault ("crashed the GPU context")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 6)
