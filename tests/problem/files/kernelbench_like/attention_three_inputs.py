# Scaled dot-product attention of three inputs with scores that prefer some keys.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [2 * torch.randn(2, 4, 32, 16) for _ in range(3)]


def get_init_inputs():
    return []
