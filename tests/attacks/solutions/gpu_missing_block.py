"""H23: the last block of the grid is missing.

Method: rounds the number of blocks down.
Problem: twice
Expect: FAIL unwritten|values|stream_order ("elements differ")
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 9)
