"""H4: memory that both processor kinds may fill later.

Method: a pinned host tensor posing as result.
Problem: twice
Expect: FAIL structure ("has device cpu")
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).cpu().pin_memory()
