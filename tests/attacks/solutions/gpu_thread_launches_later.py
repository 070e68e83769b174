"""H3: a host thread launches after forward has returned.

Method: the timed region holds nothing.
Problem: twice
Expect: FAIL stream_order|unwritten|values|stale|race
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 11)
