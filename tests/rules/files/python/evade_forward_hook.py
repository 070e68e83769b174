# expect: forward-compute:9
# The work is in a forward hook.
import cuda_extension
import torch
from torch import nn


def prepare(module, arguments):
    return (torch.tanh(arguments[0]),)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_pre_hook(prepare)

    def forward(self, x):
        return cuda_extension.copy(x)
