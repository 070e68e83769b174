"""False positive: sets the number of torch's threads.

Method: none.
Problem: linear
Expect: PASS
"""

import torch
import torch.nn as nn


torch.set_num_threads(2)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))
