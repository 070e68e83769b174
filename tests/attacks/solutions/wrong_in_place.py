"""C35: changes its input, as Model does, but to something else.

Method: only that the input changed is looked at, not to what.
Problem: in_place_and_sum
Expect: FAIL mutated_input|values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = 3 * x.sum(1)
        x.zero_()
        return out
