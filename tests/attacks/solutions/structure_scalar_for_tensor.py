"""C43: a Python number for a 0-d tensor.

Method: compares equal in many checkers.
Problem: pair
Expect: FAIL structure ("out['extra'][0]")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"double": 2 * x, "extra": (float(x.sum()), [x > 0, None])}
