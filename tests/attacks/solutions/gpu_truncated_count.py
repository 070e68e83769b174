"""C27: counts 2^31 + 8 elements in an int.

Method: the count turns negative, nothing is copied.
Problem: bytes_beyond_int
Expect: FAIL unwritten|values ("elements differ")
Options: {"trials": 1, "timeout": 120}
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.copy_bytes(x, True)
