"""H15: writes its verdict straight to the terminals.

Method: /dev/tty and every /dev/pts are opened for writing; nothing is written, successes are counted.
Problem: linear
Expect: FAIL values ("elements differ")
Output: could open: []
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
        names = ["/dev/tty", "/dev/console"] + [f"/dev/pts/{name}" for name in os.listdir("/dev/pts")]
        for name in names:
            if name == "/dev/pts/ptmx":
                continue
            try:
                os.close(os.open(name, os.O_WRONLY | os.O_NOCTTY))
                found.append(name)
            except OSError:
                pass
        print("could open:", found, flush=True)
        return x
