"""H22 C34: memory that nothing was written to.

Method: torch::empty without a launch lands on freed memory of whoever had the right answer.
Problem: twice
Expect: FAIL unwritten|values|stream_order
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 3)
