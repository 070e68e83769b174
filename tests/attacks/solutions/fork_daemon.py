"""H3: a daemon in a session of its own, with its parents gone.

Method: a kill of the process group does not reach it.
Problem: linear
Expect: FAIL children ("left a process running")
"""

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        fork, leave = getattr(os, "fo" + "rk"), getattr(os, "_ex" + "it")
        if fork() == 0:
            os.setsid()
            if fork() == 0:
                for fd in range(3, 1024):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                time.sleep(60)
            leave(0)

    def forward(self, x):
        return torch.relu(self.lin(x))
