# expect: internals:12 internals:14 internals:15
# Frames of the caller by way of a traceback.
import cuda_extension
import torch
from torch import nn


def frames():
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    while frame is not None:
        yield frame.f_locals
        frame = frame.f_back


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.caller = list(frames())

    def forward(self, x):
        return cuda_extension.f(x)
