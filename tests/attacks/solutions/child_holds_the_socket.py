"""H15 H16: the process exits; a child keeps the connection open.

Method: the judge would wait for an end of file that never comes.
Problem: linear
Expect: FAIL timeout|exit|protocol
Options: {"timeout": 8}
"""

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        fork, leave = getattr(os, "fo" + "rk"), getattr(os, "_ex" + "it")
        if fork() == 0:
            os.setsid()
            time.sleep(60)
        leave(0)
