"""H27: the right answer, computed in place of the input.

Method: saves an allocation; the caller's tensor is gone.
Problem: add
Expect: FAIL mutated_input ("ModelNew changed input 1")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return b.mul_(2).add_(a).clone()
