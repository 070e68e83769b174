# expect: acts=warn
# Uniform inputs give scores so alike that attention is an average.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.rand(2, 2, 512, 64) for _ in range(3)]


def get_init_inputs():
    return []
