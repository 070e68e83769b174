# expect: side-effects=fail:6
# Importing the file writes another.
import torch
import torch.nn as nn

open("side_effect.txt", "w").close()

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
