# expect: repeatable=fail:14
# The initial state is drawn inside forward, so two calls with the same input differ.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.hidden = hidden
        self.rnn = nn.LSTM(features, hidden, batch_first=True)

    def forward(self, x):
        h0 = torch.randn(1, x.shape[0], self.hidden)
        c0 = torch.randn(1, x.shape[0], self.hidden)
        return self.rnn(x, (h0, c0))[0]


def get_inputs():
    return [3 * torch.randn(4, 5, 6)]


def get_init_inputs():
    return [6, 8]
