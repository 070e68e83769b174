# expect: side-effects=fail:7
# Importing the file runs a program.
import torch
import torch.nn as nn

import subprocess
subprocess.run(["true"])

class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
