"""H15: sends descriptors along with an answer.

Method: hopes to fill up the judge's table of open files, or that it uses them.
Problem: linear
Expect: FAIL protocol ("file descriptors came that nobody asked for")
"""

import os

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
        channel = runner()._channel
        send = type(channel).send
        channel.send = lambda message: send(channel, message, [os.open("/dev/null", os.O_RDONLY) for _ in range(8)])
        return torch.relu(self.lin(x))
