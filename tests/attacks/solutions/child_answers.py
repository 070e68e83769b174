"""H15: a child answers in the process's stead.

Method: the parent sleeps; the child holds the same socket and sends the forged answer.
Problem: linear
Expect: FAIL values|unwritten ("never written")
Options: {"timeout": 8}
"""

import os
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
        request = next(frame.f_locals["request"] for frame in frames() if "record" in frame.f_locals.get("request", ()))
        if getattr(os, "fo" + "rk")() == 0:
            node = {"k": "tensor", "dtype": "float32", "size": [16, 32], "stride": [32, 1], "device": str(x.device)}
            runner()._channel.send(
                {
                    "n": request["n"],
                    "ok": True,
                    "out": node,
                    "ms": [0.001],
                    "copied": [True],
                    "launch_error": "",
                    "ops": [],
                    "flags": {},
                }
            )
            getattr(os, "_ex" + "it")(0)
        time.sleep(120)
