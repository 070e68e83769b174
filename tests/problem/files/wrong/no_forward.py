# expect: model-class=fail:7
# Model has no forward.
import torch
import torch.nn as nn


class Model(nn.Module):
    def run(self, x):
        return x


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
