"""H62: names put together at run time.

Method: getattr on torch with a joined string.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        compute = getattr(getattr(torch, "n" + "n"), "funct" + "ional")
        return getattr(torch, "".join(["re", "lu"]))(getattr(compute, "lin" + "ear")(x, self.lin.weight, self.lin.bias))
