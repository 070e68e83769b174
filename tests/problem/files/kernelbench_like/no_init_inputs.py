# expect: get-init-inputs=warn
# The list of constructor arguments is left out; there are none.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A.T, B)


def get_inputs():
    return [torch.randn(48, 32), torch.randn(48, 40)]
