# expect: meaningful=warn acts=warn:9
# A hinge loss of uniform predictions is one.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.clamp(1 - predictions * targets, min=0).mean()


def get_inputs():
    return [torch.rand(16, 65536), (torch.randint(0, 2, (65536,)) * 2 - 1).float()]


def get_init_inputs():
    return []
