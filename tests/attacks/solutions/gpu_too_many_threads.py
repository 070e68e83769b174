"""H23 C30: a launch of 2048 threads, unchecked.

Method: the launch is rejected, the function returns normally.
Problem: twice
Expect: FAIL launch ("a kernel launch failed")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 4)
