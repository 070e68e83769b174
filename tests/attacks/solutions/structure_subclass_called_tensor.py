"""H4: a lazy subclass whose name and module are torch.Tensor's.

Method: a check by name is fooled.
Problem: linear
Expect: FAIL structure ("not a torch.Tensor")
"""

import torch
import torch.nn as nn


def run(cls, func, types, args=(), kwargs=None):
    with torch._C.DisableTorchFunctionSubclass():
        return func(*[arg.work() if hasattr(arg, "work") else arg for arg in args], **(kwargs or {}))


Fake = type("Tensor", (torch.Tensor,), {"__torch_function__": classmethod(run), "__module__": "torch"})


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        made = torch.empty_like(x).as_subclass(Fake)
        made.work = lambda: torch.relu(self.lin(x))
        return made
