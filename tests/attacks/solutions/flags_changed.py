"""H37 C46: sets the default dtype, TF32, threads and the grad mode while it is imported.

Method: the reference would move towards a less precise candidate; in a process of its own nothing moves.
Problem: linear
Expect: PASS flags ("importing the solution sets default dtype to torch.float64")
"""

import torch
import torch.nn as nn


torch.set_default_dtype(torch.float64)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_grad_enabled(False)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n, dtype=torch.float32)

    def forward(self, x):
        return torch.relu(self.lin(x))
