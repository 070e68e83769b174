"""Marks for what needs a GPU, and the CUDA runtime that torch uses, to set in it what a solution might."""

import ctypes

import pytest
import torch


def on_gpu(test):
    """Marks a test that runs on the GPU alone."""
    absent = not torch.cuda.is_available()
    return pytest.mark.gpu(pytest.mark.skipif(absent, reason="needs an NVIDIA GPU")(test))


def torch_cuda_runtime():
    """The libcudart that torch loaded, as ctypes sees it."""
    torch.cuda.init()
    with open("/proc/self/maps") as maps:
        return ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart.so" in line))
