"""H4: a tensor subclass that computes when it is read.

Method: forward only notes what would have to be done; any operator on the result does it.
Problem: linear
Expect: FAIL structure ("may compute when it is read")
"""

import torch
import torch.nn as nn


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, work, like):
        made = torch.Tensor._make_subclass(cls, torch.empty_like(like))
        made.work = work
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [arg.work() if isinstance(arg, Lazy) and hasattr(arg, "work") else arg for arg in args]
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return Lazy(lambda: torch.relu(self.lin(x)), x)
