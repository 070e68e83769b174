"""H7: the runner's own modules, found through its frames, are replaced.

Method: poisoning, describing and copying of results do nothing any more; the answer is not computed.
Problem: linear
Expect: FAIL unwritten|values ("elements differ")
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
        it = runner()
        names = type(it).do_call.__globals__
        names["poison"] = lambda *args: 0
        names["seed_everything"] = lambda seed: None
        it._timer.stop = lambda mark: None
        it._timer.elapsed_ms = lambda mark: 0.0
        node = {"k": "tensor", "dtype": "float32", "size": [16, 32], "stride": [32, 1], "device": str(x.device)}
        it._copy_out = lambda result, *rest: (node, [True])
        return torch.zeros(16, 32)
