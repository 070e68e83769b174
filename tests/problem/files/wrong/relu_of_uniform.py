# expect: meaningful=warn acts=warn:9
# relu of numbers in [0, 1) is a copy.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(8, 16)]


def get_init_inputs():
    return []
