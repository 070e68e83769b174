"""H1 C28: a non-blocking stream made in C++, never joined.

Method: events on the caller's stream measure nothing; the result is read too early, or its input too early.
Problem: twice
Expect: FAIL stream_order|unwritten|values|stale|race
"""

import cuda_extension
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.faulty(x, 1)
