"""H16: os._exit(0) from the constructor.

Method: the same in another phase.
Problem: linear
Expect: FAIL exit ("ended by itself with exit code 0 while constructing")
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        getattr(os, "_ex" + "it")(0)
