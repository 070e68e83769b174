"""False positive: tuning constants and a table by shape.

Method: none.
Problem: linear
Expect: PASS
"""

import torch
import torch.nn as nn


CONFIGS = {16: {"num_stages": 2, "block": 64}, 32: {"num_stages": 3, "block": 128}}


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        config = CONFIGS.get(x.shape[0], {"num_stages": 2})
        assert config["num_stages"] >= 2
        return torch.relu(self.lin(x))
