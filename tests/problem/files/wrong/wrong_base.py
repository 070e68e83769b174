# expect: model-class=fail:11
# Model extends a class that is no torch module.
import torch
import torch.nn as nn


class Base:
    pass


class Model(Base):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
