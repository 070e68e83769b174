# expect: fixed-shapes=fail:14
# A size is drawn with Python's generator.
import torch
import torch.nn as nn

import random

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, random.randint(4, 9))]


def get_init_inputs():
    return []
