"""Rules of the kernels/ folder, fixed files, built modules and dispatched operators."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from utils.problem.solution import Solution, find_solution
from utils.problem.workspace import ROOT, Workspace, find_workspace
from utils.rules import RULES, dispatch_violations, kernel_files, split, static_violations
from utils.rules.allowed_ops import AT_OPS, ATEN
from utils.rules.elf import SharedObject, nested_name, read_shared_object
from utils.rules.object_symbols import object_violations

KERNEL = """__global__ void {0}_kernel(float* x) {{ x[0] = 1; }}
extern "C" void {0}_launcher(float* x, cudaStream_t stream) {{ {0}_kernel<<<1, 1, 0, stream>>>(x); }}
"""
BINDING = """#include <torch/types.h>
#include "../binding_registry.h"
extern "C" void {0}_launcher(float* x, cudaStream_t stream);
torch::Tensor {0}(torch::Tensor x) {{ {0}_launcher(x.data_ptr<float>(), c10::cuda::getCurrentCUDAStream()); return x; }}
void register_{0}(pybind11::module& m) {{ m.def("{0}", &{0}); }}
REGISTER_BINDING({0}, register_{0});
"""
NEW = """import cuda_extension
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.act(x)
"""


@pytest.fixture
def workspace(tmp_path):
    place = Workspace(tmp_path)
    place.kernels.mkdir()
    place.model_new.write_text(NEW)
    pair(place, "act")
    return place


def pair(place: Workspace, name: str) -> None:
    (place.kernels / f"{name}.cu").write_text(KERNEL.format(name))
    (place.kernels / f"{name}_binding.cpp").write_text(BINDING.format(name))


def broken(place: Workspace) -> list[tuple[str, str]]:
    return [(v.rule, v.path.name) for v in static_violations(find_solution(place))]


def test_one_pair_that_is_used(workspace):
    (workspace.kernels / "common").mkdir()
    (workspace.kernels / "common" / "reduce.cuh").write_text(
        "#pragma once\n__device__ float add(float a, float b) { return a + b; }\n"
    )
    assert broken(workspace) == []


def test_a_kernel_without_binding_and_a_binding_without_kernel(workspace):
    (workspace.kernels / "alone.cu").write_text(KERNEL.format("alone"))
    (workspace.kernels / "lonely_binding.cpp").write_text("#include <torch/types.h>\n")
    assert broken(workspace) == [("pairs", "alone.cu"), ("pairs", "lonely_binding.cpp")]


def test_a_cpp_for_library_calls_counts_as_the_other_half(workspace):
    (workspace.kernels / "act.cu").unlink()
    (workspace.kernels / "act.cpp").write_text('extern "C" void act_launcher(float* x, cudaStream_t stream) {}\n')
    assert broken(workspace) == []


@pytest.mark.parametrize(
    "name", ["act_v1.cu", "act_old.cu", "act.cu.bak", "act.cu~", "act_backup_binding.cpp", "act.o", "notes.txt"]
)
def test_leftovers(workspace, name):
    (workspace.kernels / name).write_text("")
    assert ("leftovers", name) in broken(workspace)


@pytest.mark.parametrize("name", ["README.md", "vector_copy2.cuh", "v1_shapes.cuh"])
def test_names_that_are_no_leftovers(workspace, name):
    (workspace.kernels / name).write_text("")
    assert broken(workspace) == []


def test_registered_but_never_called(workspace):
    pair(workspace, "spare")
    found = static_violations(find_solution(workspace))
    assert [(v.rule, v.path.name, v.line) for v in found] == [("leftovers", "spare_binding.cpp", 5)]
    assert "spare is registered" in found[0].sentence


def test_called_by_a_helper_or_by_a_name_in_the_text_is_called(workspace):
    pair(workspace, "spare")
    workspace.model_new.write_text(
        NEW.replace("return cuda_extension.act(x)", 'return helper(getattr(cuda_extension, "act")(x))')
        + "\n\ndef helper(x):\n    return cuda_extension.spare(x)\n"
    )
    assert broken(workspace) == []


def test_a_kernel_never_launched(workspace):
    path = workspace.kernels / "act.cu"
    path.write_text(path.read_text() + "__global__ void slow_kernel(float* x) { x[0] = 2; }\n")
    found = static_violations(find_solution(workspace))
    assert [(v.rule, v.line) for v in found] == [("leftovers", 3)]


def test_torch_in_a_cu_file(workspace):
    path = workspace.kernels / "act.cu"
    path.write_text("#include <torch/types.h>\n" + path.read_text())
    assert [(v.rule, v.line) for v in static_violations(find_solution(workspace))] == [("torch-in-cu", 1)]


def test_a_changed_copy_of_a_fixed_file(workspace):
    for name in ("binding.cpp", "binding_registry.h"):
        if not (ROOT / name).is_file():
            pytest.skip(f"{name} is not there")
        shutil.copy(ROOT / name, workspace.root / name)
    assert broken(workspace) == []
    (workspace.root / "binding.cpp").write_text("// mine\n")
    found = static_violations(find_solution(workspace))
    assert [(v.rule, v.path.name) for v in found] == [("fixed-files", "binding.cpp")]
    assert split(found, "relaxed")[0] == found, "this rule is no matter of taste"


def test_the_workbench_against_its_last_commit(tmp_path, monkeypatch):
    root = tmp_path / "bench"
    (root / "utils").mkdir(parents=True)
    for name in ("binding.cpp", "binding_registry.h", "setup.py", "utils/check.py"):
        (root / name).write_text(f"// {name}\n")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t"]
    monkeypatch.setattr(kernel_files, "ROOT", root)
    monkeypatch.delenv("KERNEL_WORKBENCH_DEVELOPER", raising=False)
    assert kernel_files.fixed_violations(Workspace(root)) == [], "no repository, nothing to compare with"
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    assert kernel_files.fixed_violations(Workspace(root)) == []
    (root / "binding.cpp").write_text("// changed\n")
    # The index may say that a file is unchanged; its content is what counts.
    subprocess.run([*git, "update-index", "--assume-unchanged", "binding.cpp"], check=True)
    (root / "utils" / "torch.py").write_text("")
    (found,) = kernel_files.fixed_violations(Workspace(root))
    assert "binding.cpp" in found.sentence and "utils/torch.py" in found.sentence
    monkeypatch.setenv("KERNEL_WORKBENCH_DEVELOPER", "1")
    assert kernel_files.fixed_violations(Workspace(root)) == []


def test_every_workspace_of_this_repository_is_within_the_rules(monkeypatch):
    monkeypatch.setenv("KERNEL_WORKBENCH_DEVELOPER", "1")
    places = [ROOT, *sorted(p for p in (ROOT / "examples").iterdir() if p.is_dir())]
    read = 0
    for folder in places:
        if not any((folder / name).is_file() for name in ("model_new.py", "solution.py")):
            continue
        read += 1
        assert static_violations(find_solution(find_workspace(folder))) == [], folder
    assert read >= 4


# -- what is built ----------------------------------------------------------------------------------------------------


def symbols(*undefined: str, needed: tuple[str, ...] = ()) -> list[str]:
    return [v.rule for v in object_violations(SharedObject(Path("m.so"), list(needed), list(undefined)))]


def test_creation_and_views_may_be_imported():
    assert symbols(
        "_ZN2at4_ops10empty_like4callERKNS_6TensorESt8optionalIN3c1010ScalarTypeEE",
        "_ZN2at4_ops13transpose_int4callERKNS_6TensorEll",
        "_ZN2at4_ops5zero_4callERNS_6TensorE",
        "_ZNK2at10TensorBase21__dispatch_contiguousEN3c1012MemoryFormatE",
        "cublasSgemm_v2", "cublasLtMatmul", "cublasSetStream_v2", "cudnnConvolutionForward", "cudaLaunchKernel",
        "cuTensorMapEncodeTiled",
        needed=(
            "libc10.so", "libtorch_cuda.so", "libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libstdc++.so.6",
            "ld-linux-x86-64.so.2",
        ),
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("symbol", "rule"),
    [
        ("_ZN2at4_ops6matmul4callERKNS_6TensorES4_", "object-compute"),
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "object-compute"),
        ("_ZN2at4_ops7softmax4call", "object-compute"),
        ("_ZN2at6native6matmulERKNS_6TensorES3_", "object-compute"),
        ("_ZN2at4cuda4blas4gemmIfEEvccllll", "object-compute"),
        ("cublasSnrm2_v2", "library"),
        ("cublasSgemv_v2", "library"),
        ("cudnnSoftmaxForward", "library"),
        ("cufftExecC2C", "library"),
        ("nvrtcCompileProgram", "library"),
    ],
)
def test_compute_and_other_libraries_may_not(symbol, rule):
    assert symbols(symbol) == [rule]


def test_another_library_is_named():
    assert symbols(needed=("libcufft.so.11",)) == ["library"]
    assert symbols(needed=("libopenblas.so.0",)) == ["library"]


def test_nested_names():
    assert nested_name("_ZN2at4_ops5zero_4callERNS_6TensorE") == ["at", "_ops", "zero_", "call"]
    assert nested_name("_ZNK2at6Tensor3sumEv") == ["at", "Tensor", "sum"]
    assert nested_name("cudaMalloc") == []


def test_reading_a_shared_object_agrees_with_the_linker(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (tmp_path / "a.cpp").write_text(
        "namespace at { struct _ops { static void mm(); }; }\n"
        'extern "C" int cublasSnrm2(int);\nint f() { at::_ops::mm(); return cublasSnrm2(1); }\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", "a.so", "a.cpp"], cwd=tmp_path, check=True)
    built = read_shared_object(tmp_path / "a.so")
    assert {"cublasSnrm2", "_ZN2at4_ops2mmEv"} <= set(built.undefined)
    assert any(name.startswith(("libc.so", "libstdc++")) for name in built.needed)


def test_not_a_shared_object(tmp_path):
    from utils.present.outcome import CannotTell

    (tmp_path / "a.so").write_bytes(b"\x7fELF\x02\x01" + b"\0" * 20)
    with pytest.raises(CannotTell, match="rebuild"):
        read_shared_object(tmp_path / "a.so")


def test_allowed_operators_exist_and_compute_nothing():
    import torch

    known = {
        s.name.removeprefix("aten::") + ("_" + s.overload_name if s.overload_name else "")
        for s in torch._C._jit_get_all_schemas()
        if s.name.startswith("aten::")
    }
    assert known >= AT_OPS
    assert not {"add", "mm", "copy_", "cat", "index", "sum", "_to_copy"} & ATEN


# -- what ran ---------------------------------------------------------------------------------------------------------


def ran(tmp_path: Path, *ops: tuple[str, str], source: str = NEW, line: int = 7) -> list[tuple[str, int | None]]:
    path = tmp_path / "model_new.py"
    path.write_text(source)
    record = [{"op": op, "count": 1, "phase": phase, "python_stack": [f"model_new.py:{line}"]} for op, phase in ops]
    return [(v.rule, v.line) for v in dispatch_violations(record, Solution("extension", path, Workspace(tmp_path)))]


def test_allocation_views_and_own_operators_may_run(tmp_path):
    ops = (
        "aten::empty.memory_format",
        "aten::empty_like",
        "aten::view",
        "aten::transpose.int",
        "aten::clone",
        "aten::zero_",
        "mylib::act",
    )
    assert ran(tmp_path, *((op, "forward") for op in ops)) == []
    assert ran(tmp_path, ("aten::copy_", "load_state_dict"), ("aten::detach", "load_state_dict")) == []
    assert ran(tmp_path, ("aten::normal_", "init"), ("aten::mul.Tensor", "init"), ("aten::uniform_", "init")) == []


@pytest.mark.parametrize(
    "op",
    [
        "aten::mm",
        "aten::add.Tensor",
        "aten::convolution",
        "aten::_softmax",
        "aten::_to_copy",
        "aten::copy_",
        "aten::index.Tensor",
        "quantized::linear",
        "inductor::accumulate",
    ],
)
def test_compute_seen_while_forward_runs(tmp_path, op):
    assert ran(tmp_path, (op, "forward")) == [("dispatched-compute", 7)]


def test_work_done_ahead_of_forward(tmp_path):
    assert ran(tmp_path, ("aten::mm", "load_state_dict")) == [("early-compute", 7)]
    assert ran(tmp_path, ("aten::convolution", "init")) == [("early-compute", 7)]
    (tmp_path / "model.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.t = torch.mm(torch.ones(2, 2), torch.ones(2, 2))\n"
    )
    assert ran(tmp_path, ("aten::mm", "init")) == [], "Model's constructor does it too"


def test_a_tensor_made_from_numbers_is_creation(tmp_path):
    source = NEW.replace(
        "return cuda_extension.act(x)", "return cuda_extension.act(x, torch.tensor([1.0], device=x.device))"
    )
    assert ran(tmp_path, ("aten::_to_copy", "forward"), source=source) == []


def test_every_rule_is_described_and_the_guards_stay_when_relaxed():
    for rule in RULES.values():
        assert rule.sentence and rule.evidence and rule.mend
    assert {rule.id for rule in RULES.values() if not rule.policy} == {"reference", "reach", "internals", "fixed-files"}
