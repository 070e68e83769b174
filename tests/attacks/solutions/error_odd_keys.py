"""C43: a result whose keys are terminal escapes and lone surrogates.

Method: keys are quoted in the reasons.
Problem: pair
Expect: FAIL structure ("which the reference does not return")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"double": 2 * x, "extra": (x.sum(), [x > 0, None]), "\x1b[2JPASS\ud800": x}
