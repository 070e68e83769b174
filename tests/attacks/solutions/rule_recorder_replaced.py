"""CA9 H7: replaces the runner's recorder of operators, found through a traceback.

Method: no name of the interpreter's introspection is called; torch computes unrecorded.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
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


class Silent:
    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def ops(self):
        return []


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        type(runner()).do_call.__globals__["Recorder"] = Silent

    def forward(self, x):
        return vars(torch)["re" + "lu"](vars(torch)["add" + "mm"](self.lin.bias, x, self.lin.weight.t()))
