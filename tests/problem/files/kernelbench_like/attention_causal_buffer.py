# Causal self-attention with the mask kept as a buffer, as in small language models.
import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        nn.init.normal_(self.qkv.weight, std=0.4)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.out(y)


def get_inputs():
    return [2 * torch.randn(4, 16, 24)]


def get_init_inputs():
    return [24, 3, 32]
