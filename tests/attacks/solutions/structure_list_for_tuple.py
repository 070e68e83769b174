"""H45 C43: a list where the reference returns a tuple.

Method: zip does not mind.
Problem: tuple_pair
Expect: FAIL structure ("out is a list, the reference returns a tuple")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return [x + 1, x * 2]
