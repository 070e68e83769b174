# expect: forward-compute:11
# Two classes of the name; the one that is not last is used.
import cuda_extension
import torch
from torch import nn

if torch.cuda.is_available():

    class ModelNew(nn.Module):
        def forward(self, x):
            return torch.relu(x)

else:

    class ModelNew(nn.Module):
        def forward(self, x):
            return cuda_extension.relu(x)
