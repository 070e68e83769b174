"""H23 C30: a launch with 200 KiB of dynamic shared memory, unchecked.

Method: the launch is rejected, the function returns normally.
Problem: twice
Expect: FAIL launch ("a kernel launch failed")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 5)
