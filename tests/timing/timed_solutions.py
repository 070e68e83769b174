"""A small problem that the tests of the clock share, and solutions of it."""

import textwrap

from utils.problem.solution import find_solution

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.tanh(x) * self.scale


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
"""

HEAD = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))
"""

HONEST = """
    def forward(self, x):
        return torch.tanh(x) * self.scale
"""


def solution_in(folder, body, name="solution.py"):
    path = folder / name
    path.write_text(HEAD + textwrap.dedent(body) if not body.startswith("\n    ") else HEAD + body)
    return find_solution(None, path)
