"""C24: sleeps for a day while it is imported.

Method: a judge without a time limit waits with it.
Problem: linear
Expect: FAIL timeout ("importing the solution did not end within")
Options: {"import_timeout": 4, "timeout": 8}
"""

import time

import torch
import torch.nn as nn


time.sleep(86400)
