"""C43: the keys of the result in another order.

Method: none: dictionaries that compare equal are equal.
Problem: pair
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"extra": (x.sum(), [x > 0, None]), "double": 2 * x}
