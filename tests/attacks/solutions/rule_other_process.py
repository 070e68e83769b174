"""H60: another Python computes.

Method: a subprocess with the tensors in files.
Problem: linear
Expect: FAIL rule ("it starts a process")
Options: {"rules": "strict"}
"""

import os
import subprocess
import sys

import torch
import torch.nn as nn


CODE = "import sys, torch; x, w, b = torch.load(sys.argv[1]); torch.save((x @ w.t() + b).clamp(min=0), sys.argv[1])"


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        path = os.path.join(os.environ["TMPDIR"], "x.pt")
        torch.save((x.clone(), self.lin.weight.detach(), self.lin.bias.detach()), path)
        subprocess.run([sys.executable, "-c", CODE, path], check=True)
        return torch.load(path)
