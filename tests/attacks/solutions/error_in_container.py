"""C43: a mapping that misbehaves while it is walked.

Method: its length, keys and values contradict one another.
Problem: pair
Expect: FAIL structure|exception|protocol
"""

import collections.abc

import torch
import torch.nn as nn


class Odd(collections.abc.Mapping):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(["double", "double"])

    def __getitem__(self, key):
        raise RuntimeError("no")

    def values(self):
        return [1]


class ModelNew(nn.Module):
    def forward(self, x):
        return Odd()
