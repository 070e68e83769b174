"""H27: keeps the input of an earlier call and changes it during a later one.

Method: at the time of its own check the input is untouched.
Problem: add
Expect: FAIL mutated_input|values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    kept = None

    def forward(self, a, b):
        out = a + 2 * b
        if self.kept is not None:
            self.kept.zero_()
        self.kept = a
        return out
