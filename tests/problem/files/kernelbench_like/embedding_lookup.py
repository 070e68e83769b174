# Rows of a table picked by int64 indices, then projected.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.out = nn.Linear(width, 7)

    def forward(self, ids):
        return self.out(self.table(ids))


def get_inputs():
    return [torch.randint(0, 50, (8, 20))]


def get_init_inputs():
    return [50, 16]
