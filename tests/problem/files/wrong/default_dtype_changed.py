# expect: dtypes=warn:14 side-effects=warn
# The file changes torch's default dtype for everybody.
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float16)

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
