import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {(0, 1): x + 1, (2, 3): x * 2}


def get_inputs():
    return [torch.randn(8, 16)]
