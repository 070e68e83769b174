"""C27: the same copied with a 64-bit count.

Method: none.
Problem: bytes_beyond_int
Expect: PASS
Options: {"trials": 1, "timeout": 120}
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.copy_bytes(x, False)
