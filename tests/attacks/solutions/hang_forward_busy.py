"""C24: an endless loop in forward that ignores every signal it may.

Method: SIGTERM, SIGINT, SIGHUP, SIGALRM do nothing.
Problem: linear
Expect: FAIL timeout ("running forward did not end within")
Options: {"timeout": 8}
"""

import signal

import torch
import torch.nn as nn


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        while True:
            pass
