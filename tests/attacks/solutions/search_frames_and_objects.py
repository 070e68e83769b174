"""H25: searches all frames and all objects for the expected values.

Method: any tensor of the right size that is neither input nor poison is taken for the answer.
Problem: linear
Expect: FAIL values|unwritten ("elements differ")
"""

import importlib

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
        seen = [value for frame in frames() for value in frame.f_locals.values()]
        seen += importlib.import_module("g" + "c").get_objects()
        for value in seen:
            if (
                type(value) is torch.Tensor
                and value.shape == x.shape
                and value.data_ptr() != x.data_ptr()
                and bool(value.isfinite().all())
            ):
                print("took a tensor found in memory", flush=True)
                return value.clone()
        return x.clone()
