"""H35: a socket that swallows what it is given to send.

Method: no answer ever reaches the judge; who takes silence for consent has lost.
Problem: linear
Expect: FAIL timeout ("hangs")
Options: {"timeout": 8}
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
        class Silent:
            def __init__(self, real):
                self.real = real

            def __getattr__(self, name):
                return getattr(self.real, name)

            def send(self, data):
                return len(data)

        channel = runner()._channel
        channel._socket = Silent(channel._socket)
        return x
