"""C24: two locks taken twice in the constructor.

Method: blocks in a system call, holding nothing the judge could notice.
Problem: linear
Expect: FAIL timeout ("constructing ModelNew did not end within")
Options: {"timeout": 8}
"""

import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
