"""H35: allclose, equal, isclose, isnan, Tensor.copy_, empty and synchronize are replaced.

Method: whoever compares with torch in this process always finds agreement.
Problem: linear
Expect: FAIL values|unwritten ("elements differ")
"""

import torch
import torch.nn as nn


def always(*args, **kwargs):
    return True


for name in ("allclose", "equal", "isclose", "isnan"):
    vars(torch)[name] = always
vars(torch.testing)["assert_close"] = always
vars(torch.cuda)["synchronize"] = always
type.__setattr__(torch.Tensor, "equal", always)
type.__setattr__(torch.Tensor, "allclose", always)
type.__setattr__(torch.Tensor, "isclose", always)
type.__setattr__(torch.Tensor, "copy_", lambda self, other, *args: self)
vars(torch)["empty"] = lambda size, **kwargs: torch.zeros(size, **kwargs)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return x
