import pytest
import torch

GPU = pytest.param(
    "cuda:0",
    id="cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")],
)


@pytest.fixture(params=[pytest.param("cpu", id="cpu"), GPU])
def device(request):
    """The devices every test of the native core runs on: the CPU always, the GPU where there is one."""
    return torch.device(request.param)
