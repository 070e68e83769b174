"""C43: an empty set, where Model returns a set of strings.

Method: a result of a type the judge has no comparison for.
Problem: no_tensor
Expect: CANNOT TELL
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return set()
