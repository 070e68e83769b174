"""CA4: files called torch.py, json.py, struct.py, utils/ and sitecustomize.py lie beside the solution.

Method: each ends the process when it is imported; none may be, and the honest solution passes.
Problem: linear
Expect: PASS import ("gets the installed one")
Files: {"torch.py": "import os; os._exit(3)", "json.py": "import os; os._exit(3)", "struct.py": "import os; os._exit(3)", "utils/__init__.py": "import os; os._exit(3)", "utils/judge/__init__.py": "import os; os._exit(3)", "sitecustomize.py": "import os; os._exit(3)", "usercustomize.py": "import os; os._exit(3)", "x.pth": "import os; os._exit(3)", "cuda_extension.py": "import os; os._exit(3)"}
"""

import json
import struct

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))
