"""H8: pins its input in the L2 cache across calls.

Method: none here: the answers are right; that the flush still works is profiling's to see.
Problem: twice
Expect: PASS
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 13)
