# expect: meaningful=warn acts=warn:9 uses-inputs=warn
# min(x, 0) and then clamp to [0, 1]: nothing is left.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(torch.minimum(x, torch.tensor(0.0)), 0, 1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
