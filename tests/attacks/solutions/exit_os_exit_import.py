"""H16: os._exit(0) while the file is imported.

Method: before the runner has answered anything about the solution.
Problem: linear
Expect: FAIL exit ("ended by itself with exit code 0 while importing")
"""

import os

import torch
import torch.nn as nn


getattr(os, "_ex" + "it")(0)
