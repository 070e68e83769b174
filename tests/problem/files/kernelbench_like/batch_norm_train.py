# Batch normalisation: in train mode it uses the batch and updates running statistics, in eval mode it does not.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, 8, 3)

    def forward(self, x):
        return self.conv(self.norm(x))


def get_inputs():
    return [torch.randn(4, 6, 12, 12)]


def get_init_inputs():
    return [6]
