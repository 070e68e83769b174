# expect: constructor-arguments=warn:8
# A chunked scan: decays built from cumulative sums, products by einsum, parameters as the tensors of a recurrence.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, batch_size, length, heads, width, state, block):
        super().__init__()
        self.block = block
        self.A = nn.Parameter(-nn.functional.softplus(torch.randn(batch_size, length, heads)))
        self.B = nn.Parameter(torch.randn(batch_size, length, heads, state))
        self.C = nn.Parameter(torch.randn(batch_size, length, heads, state))

    def forward(self, X, initial=None):
        n, t, h, d = X.shape
        X, A, B, C = (z.reshape(n, t // self.block, self.block, *z.shape[2:]) for z in (X, self.A, self.B, self.C))
        A = A.permute(0, 3, 1, 2)
        sums = A.cumsum(-1)
        decay = torch.exp(torch.tril(sums[..., :, None] - sums[..., None, :]))
        decay = torch.tril(decay)
        return torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, decay, X).reshape(n, t, h, d)


def get_inputs():
    return [torch.randn(2, 16, 3, 5)]


def get_init_inputs():
    return [2, 16, 3, 5, 4, 8]
