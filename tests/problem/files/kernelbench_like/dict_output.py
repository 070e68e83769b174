# A result with names: tensors, a number and nothing.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.lin = nn.Linear(features, 12)

    def forward(self, x, mask=None):
        y = self.lin(x)
        return {"y": y, "norm": y.norm(dim=1), "count": 3, "aux": None}


def get_inputs():
    return [torch.randn(8, 20)]


def get_init_inputs():
    return [20]
