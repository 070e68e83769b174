# expect: cpu-tensors=fail:14
# The device is a constant of the file.
import torch
import torch.nn as nn

DEVICE = torch.device("cuda")

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16, device=DEVICE)]


def get_init_inputs():
    return []
