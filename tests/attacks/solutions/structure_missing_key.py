"""H45 C43: a key is missing.

Method: whoever walks over the solution's keys does not notice.
Problem: pair
Expect: FAIL structure ("out lacks the key 'extra'")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"double": 2 * x}
