"""H50: one number for a whole row, where Model draws one for each element.

Method: each element alone has the right distribution.
Problem: quiet_noise
Expect: FAIL random
"""

import torch
import torch.nn as nn


GENERATOR = None


class ModelNew(nn.Module):
    def forward(self, x):
        global GENERATOR
        GENERATOR = GENERATOR or torch.Generator(x.device)
        return x + 0.1 * torch.randn((x.shape[0], 1), generator=GENERATOR, device=x.device)
