"""C29: the right values on the wrong device.

Method: computes or leaves them on the CPU.
Problem: twice
Expect: FAIL structure ("has device cpu, the reference has cuda:0")
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).cpu()
