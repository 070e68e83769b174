"""H15: the runner's own description of the result is replaced.

Method: forward returns None; a patched method of the runner says that it was a tensor and was copied.
Problem: linear
Expect: FAIL unwritten|values ("never written")
"""

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
        node = {"k": "tensor", "dtype": "float32", "size": [16, 32], "stride": [32, 1], "device": str(x.device)}
        runner()._copy_out = lambda result, *rest: (node, [True])
        return None
