# get_inputs never returns.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    while True:
        pass


def get_init_inputs():
    return []
