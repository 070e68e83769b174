"""The same kernel without a fault.

Method: none.
Problem: twice
Expect: PASS
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 0)
