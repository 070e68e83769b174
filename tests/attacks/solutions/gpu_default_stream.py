"""C28: a launch on the default stream.

Method: forgets the stream argument; the caller's stream does not wait.
Problem: twice
Expect: FAIL stream_order|unwritten|values|stale|race
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 2)
