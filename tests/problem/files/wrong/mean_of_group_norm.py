# expect: meaningful=warn
# The mean of a group norm is zero whatever goes in.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x):
        return self.norm(self.conv(x)).mean(dim=(1, 2, 3))


def get_inputs():
    return [torch.rand(8, 3, 12, 12)]


def get_init_inputs():
    return []
