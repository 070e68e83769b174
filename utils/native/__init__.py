"""The native core: an arena shared between processes, poison, a one-pass comparison, a timer.

C++ and CUDA behind a plain C ABI (`src/`), built once, cached by content and loaded with ctypes; it includes no torch
header, so it builds in seconds and serves any torch. Without a GPU only the C++ half is built, and every interface
works on CPU tensors.
"""
