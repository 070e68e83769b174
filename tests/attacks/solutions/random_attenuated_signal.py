"""H50: a third of the signal is lost under louder noise.

Method: as random_input_ignored, with most of the input left in.
Problem: loud_noise
Expect: FAIL random
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 0.6 * x + torch.randn_like(x) * 4
