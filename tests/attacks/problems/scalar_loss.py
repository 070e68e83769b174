import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return ((x - y) ** 2).mean()


def get_inputs():
    return [torch.randn(512, 1024), torch.randn(512, 1024)]
