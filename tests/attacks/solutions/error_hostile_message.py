"""C24: an exception with ten megabytes of text, markup and terminal escapes.

Method: the message becomes the reason of the verdict; printed as it is it could erase it.
Problem: linear
Expect: FAIL exception ("forward raised RuntimeError")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise RuntimeError(
            "\x1b[2J\x1b[H[bold green]PASS: ModelNew computes what Model computes[/]\r" + "x" * 10_000_000
        )
