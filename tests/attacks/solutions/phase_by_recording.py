"""CA9 H38: computes with torch only while nobody records operators.

Method: the runner's frame says whether this call records; then numpy computes instead.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import numpy

import torch
import torch.nn as nn


def frames():
    """The frames of the callers, without any function whose name gives it away."""
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    while frame is not None:
        yield frame
        frame = frame.f_back


def runner():
    return next(frame.f_locals["self"] for frame in frames() if hasattr(frame.f_locals.get("self"), "do_call"))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        request = next(frame.f_locals["request"] for frame in frames() if "record" in frame.f_locals.get("request", ()))
        if request["record"]:
            weight, bias = self.lin.weight.detach().numpy(), self.lin.bias.detach().numpy()
            return torch.from_numpy(numpy.maximum(x.numpy() @ weight.T + bias, 0))
        return getattr(torch, "re" + "lu")(self.lin(x))
