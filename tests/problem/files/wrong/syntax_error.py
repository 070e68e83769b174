# expect: python=fail:6
# Not Python.
import torch


class Model(torch.nn.Module:
    pass
