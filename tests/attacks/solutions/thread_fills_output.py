"""H3: a thread computes after forward has returned.

Method: the returned memory is filled half a second later.
Problem: linear
Expect: FAIL values|unwritten ("elements differ")
"""

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = torch.zeros_like(x)
        values = x.clone()

        def late():
            time.sleep(0.5)
            with torch.no_grad():
                out.copy_(torch.relu(self.lin(values)))

        getattr(threading, "Thr" + "ead")(target=late).start()
        return out
