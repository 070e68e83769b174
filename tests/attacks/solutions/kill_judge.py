"""C24: tries to stop or end the judge and everything else it can signal.

Method: signal 0 to every process; what could be signalled is counted, nothing is sent.
Problem: linear
Expect: FAIL values ("elements differ")
Output: could signal: []
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        found = []
        for name in os.listdir("/proc"):
            if name.isdecimal() and int(name) not in (1, os.getpid()):
                try:
                    getattr(os, "ki" + "ll")(int(name), 0)
                    found.append(int(name))
                except OSError:
                    pass
        print("could signal:", found, flush=True)
        return x
