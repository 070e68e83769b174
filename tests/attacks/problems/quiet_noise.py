import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + 0.1 * torch.randn_like(x)


def get_inputs():
    return [torch.randn(64, 64)]
