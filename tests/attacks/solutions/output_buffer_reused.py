"""C34: the result lives in a buffer that the next call overwrites.

Method: saves the allocation; the caller's earlier result changes.
Problem: add
Expect: FAIL overwritten_result ("the result of call 1 changed")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    buffer = None

    def forward(self, a, b):
        if self.buffer is None:
            self.buffer = torch.empty_like(a)
        self.buffer.copy_(a + 2 * b)
        return self.buffer
