"""H24: ModelNew is Model under another name.

Method: inherits the reference, with nothing of its own.
Problem: linear
Expect: FAIL rule ("the solution imports model.py")
"""

from model import Model

import torch
import torch.nn as nn


class ModelNew(Model):
    pass
