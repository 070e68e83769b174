"""H16: SystemExit(0) while the file is imported.

Method: as before, at the earliest moment there is.
Problem: linear
Expect: FAIL exit ("tried to end the process in importing")
"""

import torch
import torch.nn as nn


raise SystemExit(0)
