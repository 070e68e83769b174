"""C44: asks for more memory than the GPU has.

Method: none; said as its own failure, not the judge's.
Problem: twice
Expect: FAIL out_of_memory ("ran out of memory")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.empty(1 << 42, dtype=torch.uint8, device=x.device)
        return x * 2
