"""C26: reads a permuted input as if it were contiguous.

Method: wrong in silence.
Problem: twice_permuted
Expect: FAIL values|hint ("elements differ")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 14)
