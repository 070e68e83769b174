"""model.py and model_new.py as problem and solution: shapes, names, and whether the check means anything (CPU only)."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import pytest
import torch

from utils.problem.workspace import ROOT

ATOL = RTOL = 1e-2  # of the verification


def load(path: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model():
    return load(ROOT / "model.py", "default_model")


def passes(answer: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(answer, expected, atol=ATOL, rtol=RTOL)


class Torch:
    """The functions of cuda_extension, computed by torch on the CPU."""

    @staticmethod
    def patch_embed(images, weight, bias, config=0):
        output = torch.nn.functional.conv2d(images, weight, bias, stride=weight.shape[-1])
        return output.flatten(2).transpose(1, 2).contiguous()

    @staticmethod
    def layer_norm(x, weight, bias, eps=1e-5, config=0):
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)

    @staticmethod
    def linear_gelu(x, weight, bias, config=0):
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias), approximate="tanh")

    @staticmethod
    def linear_residual(x, weight, bias, residual, config=0):
        return torch.nn.functional.linear(x, weight, bias) + residual


@pytest.fixture
def model_new(monkeypatch):
    """model_new.py over torch's functions: its own wiring is what is tested, with no GPU and nothing built."""
    stand_in = types.ModuleType("cuda_extension")
    for name in ("patch_embed", "layer_norm", "linear_gelu", "linear_residual"):
        setattr(stand_in, name, getattr(Torch, name))
    monkeypatch.setitem(sys.modules, "cuda_extension", stand_in)
    return load(ROOT / "model_new.py", "default_model_new")


def test_the_problem_has_the_sizes_of_vit_base(model):
    (images,) = model.get_inputs()
    assert images.shape == (64, 3, 224, 224)
    assert images.dtype == torch.float32 and images.device.type == "cpu"
    assert abs(images.mean().item()) < 0.01 and abs(images.std().item() - 1) < 0.01
    shapes = {name: tuple(p.shape) for name, p in model.Model(*model.get_init_inputs()).named_parameters()}
    assert shapes == {
        "patch_embed.weight": (768, 3, 16, 16),
        "patch_embed.bias": (768,),
        "norm.weight": (768,),
        "norm.bias": (768,),
        "fc1.weight": (3072, 768),
        "fc1.bias": (3072,),
        "fc2.weight": (768, 3072),
        "fc2.bias": (768,),
    }


def test_a_token_is_a_patch_and_its_residual(model):
    """The output by hand, from the formula in the docstring, for one token."""
    torch.manual_seed(0)
    problem = model.Model(channels=2, patch=4, embed=6, hidden=10).double().eval()
    images = torch.randn(3, 2, 8, 12, dtype=torch.float64)
    with torch.no_grad():
        output = problem(images)
        assert output.shape == (3, 6, 6)
        patch = images[1, :, 4:8, 8:12]  # the last of 2 x 3 patches
        token = (problem.patch_embed.weight * patch).sum(dim=(1, 2, 3)) + problem.patch_embed.bias
        centred = token - token.mean()
        normed = centred / (centred.square().mean() + 1e-5).sqrt() * problem.norm.weight + problem.norm.bias
        u = problem.fc1.weight @ normed + problem.fc1.bias
        hidden = u / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (u + 0.044715 * u**3)))
        torch.testing.assert_close(output[1, 5], token + problem.fc2.weight @ hidden + problem.fc2.bias)


@pytest.mark.parametrize("size", ["full", "small"])
def test_trivial_answers_do_not_pass(model, size):
    """Zeros, constants, the tokens alone, an MLP without its norm's parameters: none is an answer."""
    torch.manual_seed(1)
    if size == "full":
        problem, images = model.Model(*model.get_init_inputs()).eval(), model.get_inputs()[0][:2]
    else:
        problem, (images,) = model.Model(*model.get_small_init_inputs()).eval(), model.get_small_inputs()
    with torch.no_grad():
        expected = problem(images)
        tokens = problem.patch_embed(images).flatten(2).transpose(1, 2)
        plain = torch.nn.functional.layer_norm(tokens, tokens.shape[-1:])
        wrong = {
            "zeros": torch.zeros_like(expected),
            "mean": expected.mean().expand_as(expected),
            "mean per channel": expected.mean(dim=(0, 1)).expand_as(expected),
            "tokens": tokens,
            "no MLP input": tokens + problem.fc2.bias,
            "norm without weight and bias": tokens + problem.fc2(problem.act(problem.fc1(plain))),
            "no GELU": tokens + problem.fc2(problem.fc1(problem.norm(tokens))),
            "other images": problem(torch.randn_like(images)),
        }
    assert passes(expected.clone(), expected)
    assert [name for name, answer in wrong.items() if passes(answer, expected)] == []


def test_model_new_has_the_same_parameters(model, model_new):
    """Same names and shapes, and the same values from the same seed: harnesses rely on one or the other."""
    for arguments in (model.get_init_inputs(), model.get_small_init_inputs()):
        torch.manual_seed(2)
        theirs = model.Model(*arguments).state_dict()
        torch.manual_seed(2)
        ours = model_new.ModelNew(*arguments).state_dict()
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            assert torch.equal(ours[name], value), name


def test_model_new_computes_the_model(model, model_new):
    torch.manual_seed(3)
    problem = model.Model(*model.get_small_init_inputs()).eval()
    solution = model_new.ModelNew(*model.get_small_init_inputs()).eval()
    solution.load_state_dict(problem.state_dict())
    (images,) = model.get_small_inputs()
    with torch.no_grad():
        torch.testing.assert_close(solution(images), problem(images))
        # In-place changes of parameters and inputs show in the next call: nothing is remembered.
        for module in (problem, solution):
            for value in module.parameters():
                value.mul_(1.5)
        images.neg_()
        torch.testing.assert_close(solution(images), problem(images))
