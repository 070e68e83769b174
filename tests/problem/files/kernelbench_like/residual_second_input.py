# expect: uses-weights=warn
# A transposed convolution plus a second input of the result's shape; a bias parameter is never used.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, cin, cout, kernel, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.up = nn.ConvTranspose3d(cin, cout, kernel, stride=stride, padding=padding, output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x, add_input):
        y = self.up(x) + add_input
        return y * nn.functional.hardswish(y)


def get_inputs():
    return [torch.randn(2, 4, 4, 4, 4), 3 * torch.randn(2, 6, 8, 8, 8)]


def get_init_inputs():
    return [4, 6, 3, 2, 1, 1, (6, 1, 1, 1, 1)]
