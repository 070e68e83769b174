"""CA6: the hook beneath load_state_dict drops what it is given.

Method: the base class's method is called, and calls _load_from_state_dict, which does nothing.
Problem: linear
Expect: FAIL weights ("does not hold the loaded values")
"""

import torch
import torch.nn as nn


class Deaf(nn.Linear):
    def _load_from_state_dict(self, *args, **kwargs):
        pass


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = Deaf(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))
