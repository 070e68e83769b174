"""H4: a wrapper subclass without memory of its own.

Method: __torch_dispatch__ computes when an operator reaches it.
Problem: linear
Expect: FAIL structure ("not a torch.Tensor")
"""

import torch
import torch.nn as nn


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, work, like):
        made = torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype, device=like.device)
        made.work = work
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.work() if isinstance(arg, Wrapper) else arg for arg in args]
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return Wrapper(lambda: torch.relu(self.lin(x)), x)
