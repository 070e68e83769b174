# expect: model-class=fail
# A function where a module should be.
import torch
import torch.nn as nn


def model(x):
    return x


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
