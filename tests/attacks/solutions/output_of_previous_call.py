"""H3 H22: returns the answer to the call before.

Method: the work of this call is started and left to the next.
Problem: add
Expect: FAIL values|stale ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    previous = None

    def forward(self, a, b):
        now = a + 2 * b
        before, self.previous = self.previous, now
        return now if before is None else before
