# expect: get-init-inputs=fail
# Keyword arguments are not part of the format.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.lin = nn.Linear(features, 4)

    def forward(self, x):
        return self.lin(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return {"features": 16}
