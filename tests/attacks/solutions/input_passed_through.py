"""H32: returns its input where the operator is close to the identity.

Method: the difference is below the tolerance everywhere.
Problem: nearly_identity
Expect: FAIL values ("passed through would pass")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
