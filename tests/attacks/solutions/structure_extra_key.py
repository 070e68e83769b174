"""C43: a key too many.

Method: whoever walks over the reference's keys does not notice.
Problem: pair
Expect: FAIL structure ("has the key 'more'")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"double": 2 * x, "extra": (x.sum(), [x > 0, None]), "more": x}
