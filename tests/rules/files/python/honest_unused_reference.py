# expect: nothing
# An unused helper says how the answer is defined; it is never called.
import cuda_extension
import torch
from torch import nn


def reference(x, w, b):
    return torch.nn.functional.linear(x, w, b)


def main():
    print(reference(torch.randn(2, 8), torch.randn(8, 8), torch.zeros(8)))


if __name__ == '__main__':
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.linear(x, self.weight, self.bias)
