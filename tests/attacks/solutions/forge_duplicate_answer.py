"""H15: every answer is sent twice.

Method: the second copy should be taken for the answer to the next question.
Problem: linear
Expect: FAIL protocol ("interfered with the protocol")
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
        channel = runner()._channel
        send = type(channel).send
        channel.send = lambda message: (send(channel, message), send(channel, message))
        return torch.relu(self.lin(x))
