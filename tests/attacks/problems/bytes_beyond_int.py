import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.clone()


def get_inputs():
    # Drawing two thousand million numbers takes long; repeating a million of them does as well here.
    return [torch.randint(1, 256, (1 << 20,), dtype=torch.uint8).repeat(2049)[: 2**31 + 8].clone()]


def get_small_inputs():
    return [torch.randint(1, 256, (64,), dtype=torch.uint8)]
