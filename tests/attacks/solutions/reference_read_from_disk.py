"""H24 H29: looks for the problem's file and runs it.

Method: walks the folders it knows of, the parents' folders through /proc, and the temporary folders.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import os
import tempfile

import torch
import torch.nn as nn


def candidates():
    here = os.path.dirname(__file__)
    tops = {here, os.getcwd(), tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            for part in ("cwd", "root"):
                try:
                    tops.add(os.readlink(f"/proc/{name}/{part}"))
                except OSError:
                    pass
            for part in ("cwd", "root/tmp"):
                tops.add(f"/proc/{name}/{part}")
    for top in sorted(tops - {"/"}):
        for place, folders, files in os.walk(top):
            if place.count("/") > top.count("/") + 4:
                folders.clear()
            if "mod" + "el.py" in files:
                yield os.path.join(place, "mod" + "el.py")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.answer = None
        for path in candidates():
            try:
                text = open(path).read()
            except OSError:
                continue
            if "class Model(" in text and "self.lin" in text:
                print("found the reference:", path, flush=True)
                names = {}
                exec(text, names)
                self.answer = names["Model"](n)

    def forward(self, x):
        if self.answer is None:
            return x
        self.answer.load_state_dict(self.state_dict(), strict=False)
        return self.answer(x)
