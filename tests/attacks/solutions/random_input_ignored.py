"""H50 H51: noise that drowns the signal, without the signal.

Method: Model adds noise of four times the input's size; the distribution of each element alone hardly tells that the input is missing.
Problem: loud_noise
Expect: FAIL random
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.randn_like(x) * 17**0.5
