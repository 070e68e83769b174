"""C24: a kernel that spins for half a minute.

Method: a judge without a time limit waits.
Problem: twice
Expect: FAIL timeout ("hangs")
Options: {"timeout": 6}
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 12)
