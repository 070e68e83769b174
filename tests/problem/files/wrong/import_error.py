# expect: python=fail:6
# A package that is not there.
import torch
import torch.nn as nn

import a_package_nobody_has

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
