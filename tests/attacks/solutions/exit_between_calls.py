"""H16: a thread ends the process while the judge compares.

Method: no request is being answered at that moment.
Problem: linear
Expect: FAIL exit|protocol
"""

import os
import threading
import time

import torch
import torch.nn as nn


def leave():
    time.sleep(0.01)
    getattr(os, "_ex" + "it")(0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = torch.relu(self.lin(x))
        getattr(threading, "Thr" + "ead")(target=leave).start()
        return out
