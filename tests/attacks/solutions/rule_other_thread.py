"""CA9: computes in a thread, where the recorder of operators does not look.

Method: a dispatch mode belongs to a thread; ThreadPool of multiprocessing is no threading.Thread.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

from multiprocessing.pool import ThreadPool

import torch
import torch.nn as nn


POOL = ThreadPool(1)


def compute(x, weight, bias):
    with torch.no_grad():
        return (x @ weight.t() + bias).clamp(min=0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return POOL.apply(compute, (x, self.lin.weight, self.lin.bias)).detach()
