"""The rules of solutions in one file: load_inline and Triton."""

from __future__ import annotations

import pytest

from utils.judge import staging
from utils.problem.solution import find_solution
from utils.rules import static_violations
from utils.rules.run import built_modules

INLINE = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void matmul_kernel(const float* A, const float* B, float* C, int N) { C[0] = A[0] * B[0]; }

torch::Tensor matmul(torch::Tensor A, torch::Tensor B) {
    auto C = torch::zeros({A.size(0), B.size(1)}, A.options());
    matmul_kernel<<<1, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), 1);
    return C;
}
"""

module = load_inline(
    name="matmul",
    cpp_sources="torch::Tensor matmul(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_source,
    functions=["matmul"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return module.matmul(A.cuda(), B.cuda())
'''

TRITON = """import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_stages=2)], key=["n"])
@triton.jit
def act_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.maximum(x, 0) + tl.sum(x * x, axis=0) * tl.exp(-x), mask=at < n)


def act(x):
    y = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    act_kernel[grid](x, y, n)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x.contiguous())
"""


def breaches(tmp_path, text: str) -> list[tuple[str, int | None]]:
    path = tmp_path / "solution.py"
    path.write_text(text)
    return [(v.rule, v.line) for v in static_violations(find_solution(None, path))]


def test_honest_solutions_in_one_file(tmp_path):
    assert breaches(tmp_path, INLINE) == []
    assert breaches(tmp_path, TRITON) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    return C;", "    return at::matmul(A, B);", [("cpp-compute", 15)]),
        ("    return C;", "    return C + A;", [("cpp-compute", 15)]),
        (", 0, c10::cuda::getCurrentCUDAStream()>>>", ">>>", [("stream", 13)]),
        ("module.matmul(A.cuda(), B.cuda())", "A @ B", [("forward-compute", 32)]),
        ("#include <c10/cuda/CUDAStream.h>", "#include <cutlass/cutlass.h>", [("library", 7)]),
        ("import torch.nn as nn", "import torch.nn as nn\nimport flash_attn", [("library", 3)]),
    ],
)
def test_breaches_in_an_inline_source_have_the_line_of_the_python_file(tmp_path, old, new, expected):
    assert INLINE.count(old) == 1
    assert breaches(tmp_path, INLINE.replace(old, new)) == expected


def test_a_source_joined_from_pieces_is_read_whole(tmp_path):
    text = INLINE.replace('    return C;\n}\n"""', '    return at::m""" + """atmul(A, B);\n}\n"""')
    assert ("cpp-compute", 5) in {(rule, 5) for rule, _ in breaches(tmp_path, text)}


def test_a_source_that_cannot_be_read_is_said(tmp_path):
    start, end = INLINE.index('cuda_source = """'), INLINE.index("module = load_inline")
    text = (
        INLINE[:start] + "import base64\n\ncuda_source = base64.b64decode(b'I2luY2x1ZGU=').decode()\n\n" + INLINE[end:]
    )
    text = text.replace(
        '"torch::Tensor matmul(torch::Tensor A, torch::Tensor B);"', "base64.b64decode(b'dG9yY2g=').decode()"
    )
    assert [rule for rule, _ in breaches(tmp_path, text)] == ["hidden-code"]


def test_a_source_in_a_file_beside_the_solution_is_read(tmp_path):
    (tmp_path / "op.cu").write_text(
        "#include <torch/extension.h>\ntorch::Tensor f(torch::Tensor a) { return a.exp(); }\n"
    )
    start, end = INLINE.index('"""\n#include'), INLINE.index("\n\nmodule = load_inline")
    text = INLINE[:start] + 'open("op.cu").read()' + INLINE[end:]
    path = tmp_path / "solution.py"
    path.write_text(text)
    found = static_violations(find_solution(None, path))
    assert [(v.rule, v.path.name, v.line) for v in found] == [("cpp-compute", "op.cu", 2)]


def test_torch_beside_a_triton_kernel(tmp_path):
    assert breaches(tmp_path, TRITON.replace("return act(x.contiguous())", "return act(x).softmax(-1)")) == [
        ("forward-compute", 25)
    ]
    assert breaches(tmp_path, TRITON.replace("    return y\n", "    return torch.relu(y)\n")) == [
        ("forward-compute", 20)
    ]


def test_what_the_runner_built_of_an_inline_solution_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "solution"
    folder.mkdir()
    (folder / "solution.py").write_text(INLINE)
    solution = find_solution(None, folder / "solution.py")
    assert built_modules(solution) == []
    stage = staging.prepare(solution, None, folder / "solution.py")
    try:
        built = stage.cache / "torch_extensions" / "matmul" / "matmul.so"
        built.parent.mkdir(parents=True)
        built.touch()
        assert built_modules(solution) == [built]
    finally:
        stage.remove()
    (folder / "solution.py").write_text(INLINE + "# another solution\n")
    assert built_modules(solution) == []
