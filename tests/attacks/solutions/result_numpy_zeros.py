"""C43: zeros as numpy array, where Model returns a numpy array.

Method: as before.
Problem: numpy_result
Expect: CANNOT TELL
"""

import numpy

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return numpy.zeros((16, 32), dtype=numpy.float32)
