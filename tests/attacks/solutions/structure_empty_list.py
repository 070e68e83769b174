"""H45: an empty result.

Method: zip of nothing with everything finds no difference.
Problem: tuple_pair
Expect: FAIL structure ("out has 0 items, the reference returns 2")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return ()
