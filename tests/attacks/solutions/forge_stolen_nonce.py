"""H15: answers with the right nonce, read from the runner's frames, and claims an output that was never written.

Method: the answer is complete and well formed; only the memory of the output is missing.
Problem: linear
Expect: FAIL unwritten|values ("never written")
Options: {"timeout": 8}
"""

import time

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
        request = next(frame.f_locals["request"] for frame in frames() if "request" in frame.f_locals)
        node = {"k": "tensor", "dtype": "float32", "size": [16, 32], "stride": [32, 1], "device": str(x.device)}
        answer = {
            "n": request["n"],
            "ok": True,
            "out": node,
            "ms": [0.001],
            "copied": [True],
            "launch_error": "",
            "ops": [],
            "flags": {},
        }
        runner()._channel.send(answer)
        time.sleep(60)
