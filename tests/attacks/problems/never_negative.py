import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 3


def get_inputs():
    return [torch.rand(16, 32)]
