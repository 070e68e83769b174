"""C35: does nothing, where Model only changes its input in place.

Method: there is no result that could differ.
Problem: in_place_only
Expect: FAIL mutated_input|values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return None
