# expect: hidden-code:16
# attrgetter with a name that cannot be read.
import operator

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return operator.attrgetter("".join(["re", "lu"]))(x)()
