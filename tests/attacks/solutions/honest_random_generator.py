"""False positive: random numbers of a generator of its own, from the same distribution.

Method: none.
Problem: quiet_noise
Expect: PASS random ("same means")
"""

import torch
import torch.nn as nn


GENERATOR = None


class ModelNew(nn.Module):
    def forward(self, x):
        global GENERATOR
        GENERATOR = GENERATOR or torch.Generator(x.device)
        return x + 0.1 * torch.randn(x.shape, generator=GENERATOR, device=x.device)
