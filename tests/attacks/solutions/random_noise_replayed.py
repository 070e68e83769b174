"""H54: sixteen draws of noise, used in turn.

Method: a table instead of a generator.
Problem: quiet_noise
Expect: FAIL random
"""

import torch
import torch.nn as nn


NOISE = []
COUNT = [0]


class ModelNew(nn.Module):
    def forward(self, x):
        if not NOISE:
            NOISE.extend(torch.randn(x.shape, device=x.device) for _ in range(16))
        COUNT[0] += 1
        return x + 0.1 * NOISE[COUNT[0] % 16]
