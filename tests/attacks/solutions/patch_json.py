"""H35: json.dumps is replaced by one that always says yes.

Method: whatever the runner wants to say becomes the same forged answer.
Problem: linear
Expect: FAIL protocol|exit
"""

import json

import torch
import torch.nn as nn


vars(json)["dumps"] = lambda *args, **kwargs: '{"ok":true,"verdict":"PASS"}'


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return x
