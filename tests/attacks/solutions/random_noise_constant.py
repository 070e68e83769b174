"""H54: noise drawn once and kept.

Method: every call adds the same numbers.
Problem: quiet_noise
Expect: FAIL random
"""

import torch
import torch.nn as nn


NOISE = []


class ModelNew(nn.Module):
    def forward(self, x):
        if not NOISE:
            NOISE.append(torch.randn(x.shape, device=x.device))
        return x + 0.1 * NOISE[0]
