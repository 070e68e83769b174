# One argument is a list of tensors of different lengths.
from typing import List

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, xs: List[torch.Tensor], scale: float = 2.0):
        return torch.cat(xs) * scale


def get_inputs():
    return [[torch.randn(3, 8), torch.randn(5, 8)], 0.5]


def get_init_inputs():
    return []
