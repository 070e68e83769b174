# expect: model-class=fail:12
# Two modules, none named Model.
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def forward(self, x):
        return x


class Decoder(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
