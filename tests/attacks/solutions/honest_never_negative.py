"""H52: leaves out relu where inputs are never negative.

Method: none here; said as a warning, since get_inputs gives no negative number.
Problem: never_negative
Expect: PASS scaled ("other sign and scale")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 3
