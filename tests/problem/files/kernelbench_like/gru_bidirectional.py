# A bidirectional GRU, sequence first, returning its whole output.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.GRU(features, hidden, bidirectional=True)
        for weight in self.rnn.parameters():
            nn.init.normal_(weight, std=0.6)

    def forward(self, x, h0):
        return self.rnn(x, h0)[0]


def get_inputs():
    return [3 * torch.randn(9, 4, 6), torch.randn(2, 4, 8)]


def get_init_inputs():
    return [6, 8]
