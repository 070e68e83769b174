# expect: side-effects=warn
# A global flag is changed when the file is imported.
import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
