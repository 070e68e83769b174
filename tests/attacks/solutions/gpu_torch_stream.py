"""H1: torch's operators on a stream of torch, never joined.

Method: as gpu_side_stream, from Python.
Problem: twice
Expect: FAIL stream_order|unwritten|values|stale|race
"""

import torch
import torch.nn as nn

STREAM = None


class ModelNew(nn.Module):
    def forward(self, x):
        global STREAM
        STREAM = STREAM or torch.cuda.Stream()
        with torch.cuda.stream(STREAM):
            return x * 2
