# expect: repeatable=fail
# A cell that remembers its hidden state between calls: the second call answers something else.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.step = nn.Linear(features + hidden, hidden)
        self.hidden = torch.randn(4, hidden)

    def forward(self, x):
        self.hidden = torch.tanh(self.step(torch.cat([x, self.hidden], dim=1)))
        return self.hidden


def get_inputs():
    return [torch.randn(4, 6)]


def get_init_inputs():
    return [6, 16]
