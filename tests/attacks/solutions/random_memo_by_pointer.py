"""H38 H50: remembers the input by its address, under noise of its own.

Method: Model draws random numbers, so results are compared as samples; only the first call of each trial is.
Problem: quiet_noise
Expect: FAIL random|values|stale
"""

import torch
import torch.nn as nn


GENERATOR = None


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        global GENERATOR
        GENERATOR = GENERATOR or torch.Generator(x.device)
        key = x.data_ptr()
        if key not in self.known:
            self.known[key] = x.clone()
        return self.known[key] + 0.1 * torch.randn(x.shape, generator=GENERATOR, device=x.device)
