"""C43: a list that never ends.

Method: a mapping whose iterator goes on for ever.
Problem: pair
Expect: FAIL timeout|memory|exception|crash|protocol
Options: {"timeout": 8, "memory_limit": 2147483648}
"""

import collections.abc
import itertools

import torch
import torch.nn as nn


class Endless(collections.abc.Mapping):
    def __len__(self):
        return 1

    def __iter__(self):
        return (str(number) for number in itertools.count())

    def __getitem__(self, key):
        return 1


class ModelNew(nn.Module):
    def forward(self, x):
        return Endless()
