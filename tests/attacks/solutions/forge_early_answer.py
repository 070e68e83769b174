"""H15: answers on the descriptor found in /proc/self/fd before the runner does.

Method: a well-formed frame that claims success, without the question's nonce.
Problem: linear
Expect: FAIL protocol ("nonce")
"""

import json
import os

import torch
import torch.nn as nn


def sockets():
    """Descriptors of this process that are sockets."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.write(int(name), b"")  # those of the GPU driver are not connected and raise
                found.append(int(name))
        except OSError:
            pass
    return found


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        node = {"k": "tensor", "dtype": "float32", "size": [16, 32], "stride": [32, 1], "device": str(x.device)}
        answer = {
            "n": "0" * 16,
            "ok": True,
            "out": node,
            "ms": [0.001],
            "copied": [True],
            "launch_error": "",
            "ops": [],
            "flags": {},
        }
        payload = json.dumps(answer).encode()
        for fd in sockets():
            os.write(fd, len(payload).to_bytes(4, "big") + payload)
        return x
