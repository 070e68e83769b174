"""C43: other keys, which print alike.

Method: keys that are tuples of the same length are shown in the same words.
Problem: tuple_keys
Expect: FAIL structure
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {(7, 7): x + 1, (8, 8): x * 2}
