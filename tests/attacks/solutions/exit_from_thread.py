"""H16: a thread ends the process while forward still runs.

Method: sys.exit in a thread would only end the thread, so it is os._exit.
Problem: linear
Expect: FAIL exit ("ended by itself with exit code 0")
"""

import os
import threading
import time

import torch
import torch.nn as nn


def leave():
    time.sleep(0.2)
    getattr(os, "_ex" + "it")(0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        getattr(threading, "Thr" + "ead")(target=leave).start()
        time.sleep(2)
        return torch.relu(self.lin(x))
