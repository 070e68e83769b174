"""C46 CA6: running statistics are not updated, and not shown once forward has run.

Method: a hook on the state_dict leaves the buffers out after the weights were loaded and looked at.
Problem: batch_norm
Expect: FAIL buffers
Options: {"train": true}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.BatchNorm1d(n)
        self.ran = False
        self._register_state_dict_hook(lambda module, state, prefix, meta: module.hide(state))
        self.register_load_state_dict_pre_hook(lambda module, *args: setattr(module, "ran", False))

    def hide(self, state):
        if self.ran:
            for name in [name for name in state if "running" in name or "num_batches" in name]:
                del state[name]
        return state

    def forward(self, x):
        self.ran = True
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        return (x - mean) / torch.sqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
