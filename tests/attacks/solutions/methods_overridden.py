"""CA6: overrides what the harness calls on a model, and keeps weights of its own.

Method: load_state_dict, state_dict, parameters, to, eval and train all claim success and do nothing.
Problem: linear
Expect: FAIL values|stale|weights
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.own = [self.lin.weight.detach().clone(), self.lin.bias.detach().clone()]

    def load_state_dict(self, *args, **kwargs):
        return torch.nn.modules.module._IncompatibleKeys([], [])

    def state_dict(self, *args, **kwargs):
        return {}

    def parameters(self, recurse=True):
        return iter(())

    def to(self, *args, **kwargs):
        return self

    def train(self, mode=True):
        return self

    def eval(self):
        return self

    def forward(self, x):
        return torch.relu(x @ self.own[0].t().to(x.device) + self.own[1].to(x.device))
