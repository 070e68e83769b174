"""False positive: a CUDA graph inside the solution.

Method: none.
Problem: twice
Expect: PASS
"""

import cuda_extension
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    graph = None

    def forward(self, x):
        if self.graph is None or self.given.shape != x.shape:
            self.given = x.clone()
            cuda_extension.faulty(self.given, 0)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.made = cuda_extension.faulty(self.given, 0)
        self.given.copy_(x)
        self.graph.replay()
        return self.made.clone()
