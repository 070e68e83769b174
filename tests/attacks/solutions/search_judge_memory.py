"""H25: reads the memory of the judge and of its relatives.

Method: /proc/PID/mem, process_vm_readv and ptrace on every ancestor; what can be opened is counted.
Problem: linear
Expect: FAIL values ("elements differ")
Output: could open: []
"""

import importlib
import os

import torch
import torch.nn as nn


def opened():
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        for part in ("mem", "environ", "maps", "fd"):
            path = f"/proc/{name}/{part}"
            try:
                if part == "fd":
                    if os.listdir(path):
                        found.append(path)
                elif open(path, "rb").read(1):
                    found.append(path)
            except (OSError, ValueError):
                pass
    native = importlib.import_module("ctype" + "s")
    libc = getattr(native, "CD" + "LL")(None)
    parent = os.getppid()
    if libc.ptrace(16, parent, None, None) == 0:
        found.append(f"ptrace {parent}")
        libc.ptrace(17, parent, None, None)
    return found


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        print("could open:", opened(), flush=True)
        return x
