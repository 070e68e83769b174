"""Runs one gallery workspace on shapes that fit nothing, in every config, against the model in fp64; prints JSON lines.

    python gallery_cases.py NAME FOLDER DEVICE

FOLDER: where the workspace's cuda_extension lies. DEVICE: cuda, or cpu for a simulated cuda_extension.
A process of its own per workspace: every built module is called cuda_extension.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
randn, rand = torch.randn, torch.rand

# Constructor arguments and inputs, beside the small ones of each model.py. Sizes are ugly on purpose: around the widths
# of vectors (4), warps (32, 128), tiles (64, 128, 4096) and the limits between one path of a launcher and the next.
CASES: dict[str, list[tuple[list[Any], Callable[[], list[Any]]]]] = {
    "softmax_rows": [
        ([], lambda: [5 * randn(3, 1)]),
        ([], lambda: [5 * randn(2, 4096)]),
        ([], lambda: [torch.cat([5 * randn(2, 999), torch.full((2, 1), -float("inf"))], dim=1)]),
        ([], lambda: [1e4 * randn(3, 111)]),
    ],
    "cumsum_rows": [
        ([], lambda: [randn(1, 1)]),
        ([], lambda: [randn(3, 20)]),
        ([], lambda: [randn(2, 4097)]),
        ([], lambda: [randn(2, 4100)]),
    ],
    "layer_norm": [
        ([(7,)], lambda: [randn(3, 7) + 100]),
        ([(3, 41, 67)], lambda: [randn(3, 3, 41, 67)]),
        ([(2, 6, 11)], lambda: [1e-3 * randn(4, 2, 6, 11) + 1]),
        ([(65537,)], lambda: [randn(2, 65537)]),
        # Teams: two of 4 blocks or one of 8 on the simulator's 8 SMs; more rows each than slots for turns, one row
        # alone, a large mean.
        ([(4, 16384)], lambda: [randn(11, 4, 16384) * torch.rand(11, 1, 1) + 30 * randn(11, 1, 1)]),
        ([(8, 32768)], lambda: [randn(6, 8, 32768) + 100 * randn(6, 8, 1)]),
        ([(5 * 32768,)], lambda: [randn(1, 5 * 32768)]),
    ],
    "group_norm": [
        ([6, 6], lambda: [randn(2, 6, 5, 5) + 100]),
        ([12, 4], lambda: [randn(2, 12, 19, 23)]),
        ([6, 1], lambda: [randn(1, 6, 4, 9)]),
        ([4, 2], lambda: [randn(3, 4, 1, 3)]),
        ([8, 2], lambda: [randn(6, 8, 128, 128) * torch.rand(6, 8, 1, 1) + 10 * randn(6, 8, 1, 1)]),
        ([8, 2], lambda: [randn(3, 8, 32768) + 100]),
    ],
    "max_pool_2d": [
        ([4, 1, 1], lambda: [randn(1, 1, 2, 2)]),
        ([4, 1, 1], lambda: [randn(3, 2, 5, 33)]),
        ([4, 1, 1], lambda: [-rand(1, 2, 40, 128) - 1]),
        ([4, 1, 1], lambda: [randn(1, 1, 71, 300)]),
        ([4, 1, 1], lambda: [randn(1, 1, 34, 512)]),
        ([4, 1, 1], lambda: [randn(1, 1, 6, 513)]),
    ],
    "cross_entropy": [
        ([], lambda: [randn(1, 1), torch.zeros(1, dtype=torch.int64)]),
        ([], lambda: [50 * randn(9, 1028), torch.tensor([0, 1027, -100, 5, 5, 1, 2, -100, 900])]),
        ([], lambda: [randn(300, 7), torch.randint(0, 7, (300,))]),
    ],
    "matmul_square": [([], lambda: [rand(5, 3), rand(3, 7)]), ([], lambda: [rand(64, 2048), rand(2048, 36)])],
    "matmul_rect": [([], lambda: [rand(1, 111), rand(111, 1)]), ([], lambda: [rand(64, 1024), rand(1024, 36)])],
    "gemm_act_scale": [([30, 50, -1.5], lambda: [randn(7, 30)])],
    "matmul_triangular": [
        ([], lambda: [rand(4, 4).triu(), rand(4, 4).triu()]),
        ([], lambda: [rand(128, 128).triu(), rand(128, 128).triu()]),
        ([], lambda: [rand(516, 516).triu(), rand(516, 516).triu()]),
    ],
    "attention_causal": [
        ([], lambda: [randn(1, 1, 1, 64) for _ in range(3)]),
        ([], lambda: [randn(2, 1, 65, 64) for _ in range(3)]),
        ([], lambda: [randn(1, 3, 128, 64) for _ in range(3)]),
    ],
    "transformer_block": [([96, 1, 5], lambda: [randn(3, 5, 96)])],
    "conv_bias_act_pool": [
        ([8, 8, 3, -2.0, 4], lambda: [randn(5, 8, 9, 21)]),
        ([8, 128, 3, 2.0, 4], lambda: [randn(1, 8, 22, 76)]),
    ],
}
ATOL = RTOL = 1e-2


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def configs(extension: ModuleType) -> Iterator[tuple[str, int]]:
    """Every config that a binding's docstring lists."""
    for function in sorted(dir(extension)):
        text = getattr(extension, function).__doc__ if callable(getattr(extension, function)) else None
        if text and "\nconfig:" in text:
            for number in re.findall(r"^ {4}(\d+)  \S", text.split("\nconfig:", 1)[1], flags=re.MULTILINE):
                yield function, int(number)


def main() -> None:
    name, folder, device = sys.argv[1:]
    sys.path.insert(0, folder)
    import cuda_extension

    torch.set_grad_enabled(False)
    problem = load("problem", EXAMPLES / name / "model.py")
    solution = load("solution", EXAMPLES / name / "model_new.py")
    small = (getattr(problem, "get_small_init_inputs", problem.get_init_inputs)(), problem.get_small_inputs)
    for case, (init, draw) in enumerate([small, *CASES[name]]):
        torch.manual_seed(case)
        inputs = [value.to(device) for value in draw()]
        exact = problem.Model(*init).eval().to(device)
        new = solution.ModelNew(*init).eval().to(device)
        new.load_state_dict(exact.state_dict())
        expected = exact.double()(*[value.double() if value.is_floating_point() else value for value in inputs])
        for function, config in [("as model_new.py says", -1), *configs(cuda_extension)]:
            original = getattr(cuda_extension, function, None)
            if original is not None:
                override = {"config": config}
                setattr(cuda_extension, function, lambda *a, o=original, c=override, **k: o(*a, **(k | c)))
            got = new(*inputs)
            if original is not None:
                setattr(cuda_extension, function, original)
            difference = (got.double() - expected).abs()
            print(
                json.dumps(
                    {
                        "case": case,
                        "function": function,
                        "config": config,
                        "same_shape": got.shape == expected.shape and got.dtype == torch.float32,
                        "failing": int((~(difference <= ATOL + RTOL * expected.abs())).sum()),
                        "worst": float(difference.max()),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
