"""C24: writes behind its input.

Method: lands in allocated memory, so that no error is raised.
Problem: twice
Expect: FAIL overrun ("outside the bounds of input 0")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 10)
