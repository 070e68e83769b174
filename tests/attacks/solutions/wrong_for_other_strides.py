"""C26: reads its input as if it were contiguous.

Method: right for what get_inputs gives, wrong in silence for a transposed tensor of the same values.
Problem: add
Expect: FAIL strided ("another memory layout")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        flat = [torch.as_strided(t, (t.numel(),), (1,)) for t in (a, b)]
        return (flat[0] + 2 * flat[1]).view(a.shape)
