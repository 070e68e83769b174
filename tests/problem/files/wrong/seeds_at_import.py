# expect: side-effects=warn:6
# A seed when the file is imported.
import torch
import torch.nn as nn

torch.manual_seed(0)

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
