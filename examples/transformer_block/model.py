"""One block of a small GPT: 8 sequences of 1024 tokens, width 768, 8 heads, pre-norm, causal."""

import math

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int, longest: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.register_buffer("future", torch.ones(longest, longest, dtype=torch.bool).triu(1), persistent=False)
        # Three times the usual spread: scores then spread by about 3. At the usual one all weights of a row are nearly
        # equal, and averaging the values would pass for attention.
        nn.init.normal_(self.qkv.weight, std=3.0 / math.sqrt(3 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2)
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.projection(mixed.transpose(1, 2).reshape(batch, length, width))


class Model(nn.Module):
    def __init__(self, width: int, heads: int, longest: int):
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, longest)
        self.norm_2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        for norm in (self.norm_1, self.norm_2):
            nn.init.normal_(norm.weight, mean=1.0, std=0.2)
            nn.init.normal_(norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        hidden = nn.functional.gelu(self.expand(self.norm_2(x)), approximate="tanh")
        return x + self.contract(hidden)


BATCH = 8
LENGTH = 1024
WIDTH = 768
HEADS = 8


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float32)]


def get_init_inputs():
    return [WIDTH, HEADS, LENGTH]


def get_small_inputs():
    return [torch.randn(2, 75, 192, dtype=torch.float32)]


def get_small_init_inputs():
    return [192, 2, 80]
