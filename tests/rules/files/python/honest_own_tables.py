# expect: nothing
# The module's own table, a traceback that is printed, names of internals in words, a dispatcher of the solution's own.
import sys
import traceback

import cuda_extension
import torch
from torch import nn


class Config:
    """Holds sizes; its __globals__ and tb_frame are nobody's business."""

    def __init__(self, block=64):
        self.block = block

    def __eq__(self, other):
        return isinstance(other, Config) and self.block == other.block

    def __hash__(self):
        return hash(self.block)

    def __iter__(self):
        yield self.block


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self._dispatch_table = {torch.float32: cuda_extension.f32, torch.float16: cuda_extension.f16}
        self._mode = "fast"
        try:
            cuda_extension.warm_up()
        except RuntimeError as error:
            traceback.print_exception(type(error), error, error.__traceback__)
            pass

    def __getattr__(self, name):
        return super().__getattr__(name)

    def _dispatch(self, dtype, table=None, shape=(8, 8)):
        return (table or self._dispatch_table)[dtype]

    def forward(self, x, size=torch.Size([8])):
        config = Config()
        if "packed" not in self.__dict__:
            self.__dict__["packed"] = cuda_extension.pack(self.weight)
        match x.dim():
            case 2:
                block = config.block
            case _:
                raise ValueError(f"f_back and torch.relu are words here, {config}, {sys.modules[__name__].__name__}")
        kernel = self._dispatch(x.dtype)
        with torch.profiler.record_function("linear"):
            return kernel(x, self.__dict__["packed"], block, getattr(self, "weight"), vars(self)["packed"])
