"""The command `python -m utils.check`: exit codes, the child's limits, --fix, --json, whole workspaces."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from utils import check
from utils.present.outcome import CannotTell
from utils.problem.checks.limits import findings_in_child

FILES = Path(__file__).parent / "files"


def in_child(name: str, limit: float = 60.0, memory: int = 4 << 30):
    task = {"kind": "problem", "path": str(FILES / "child" / name), "device": "cpu", "memory": memory, "seconds": 30}
    return {f.check: f for f in findings_in_child(task, limit)}


def test_a_file_that_hangs_is_ended_and_named():
    started = time.monotonic()
    found = in_child("hangs.py", limit=12)
    assert time.monotonic() - started < 60
    assert found["get-inputs"].status == "fail"
    assert "12 s" in found["get-inputs"].sentence and "get_inputs()" in found["get-inputs"].sentence


def test_a_constructor_that_takes_all_memory_fails_with_its_line():
    found = in_child("takes_too_much.py")
    assert (found["constructs"].status, found["constructs"].line) == ("fail", 9)
    assert "MemoryError" in found["constructs"].sentence


def test_a_crash_is_a_finding():
    found = in_child("crashes.py")
    assert found["runs"].status == "fail"
    assert "SIGSEGV" in found["runs"].sentence


def test_exit_codes_and_json(tmp_path, capsys):
    right, wrong = FILES / "kernelbench_like" / "dict_output.py", FILES / "wrong" / "forward_fails.py"
    assert check.main([str(right), "--device", "cpu", "--json", str(tmp_path / "yes.json")]) == 0
    record = json.loads((tmp_path / "yes.json").read_text())
    assert record["schema"] == "workbench/check/1"
    assert (record["verdict"], record["exit_code"]) == ("YES", 0)
    assert {c["check"] for c in record["results"]["problem"]["checks"]} >= {"runs", "meaningful", "acts"}
    assert check.main([str(wrong), "--device", "cpu", "--json", str(tmp_path / "no.json")]) == 1
    record = json.loads((tmp_path / "no.json").read_text())
    assert record["exit_code"] == 1 and "forward_fails.py" in record["reasons"][0]
    assert "FAIL" in capsys.readouterr().out


def test_a_missing_file_cannot_be_told(tmp_path):
    with pytest.raises(CannotTell, match="there is no file"):
        check.main([str(tmp_path / "nothing.py")])
    with pytest.raises(CannotTell, match=r"no model\.py"):
        check.main(["--workspace", str(tmp_path)])


def test_fix_mends_shows_the_change_and_loses_nothing(tmp_path, capsys):
    path = tmp_path / "net.py"
    before = (
        "import torch\nimport torch.nn as nn\n\n\n"
        "class Net(nn.Module):  # keeps its comment\n    def __init__(self):\n        super(Net, self).__init__()\n\n"
        "    def forward(self, x, y):\n        return x @ y\n\n\n"
        'def get_inputs():\n    x = torch.randn(8, 8, device="cuda")  # größer\n'
        '    return x, torch.randn(8, 8).to("cuda")\n'
    )
    path.write_text(before)
    assert check.main([str(path), "--fix", "--device", "cpu"]) == 0
    after = path.read_text()
    assert "class Model(nn.Module):  # keeps its comment" in after
    assert "super(Model, self)" in after
    assert "x = torch.randn(8, 8)  # größer" in after
    assert "return [x, torch.randn(8, 8)]" in after
    assert "def get_init_inputs():\n    return []" in after
    assert (tmp_path / "net.py.orig").read_text() == before
    out = capsys.readouterr().out
    assert "-class Net(nn.Module):" in out and "+class Model(nn.Module):" in out
    assert check.main([str(path), "--fix", "--device", "cpu"]) == 0
    assert path.read_text() == after
    assert "nothing to mend" in capsys.readouterr().out


def test_fix_goes_on_with_what_could_be_tried_only_after_a_mend(tmp_path, capsys):
    path = tmp_path / "net.py"
    before = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        return x * 2\n\n\ndef get_inputs():\n    return torch.randn(8, 8)\n"
    )
    path.write_text(before)
    assert check.main([str(path), "--fix", "--device", "cpu"]) == 0
    # That one tensor is returned shows when there is a Model to run.
    assert "class Model(nn.Module)" in path.read_text() and "return [torch.randn(8, 8)]" in path.read_text()
    assert (tmp_path / "net.py.orig").read_text() == before and not (tmp_path / "net.py.orig1").exists()
    assert "0 warnings" in capsys.readouterr().out


def make_workspace(folder: Path, new: str) -> Path:
    (folder / "kernels").mkdir(parents=True)
    (folder / "model.py").write_text((FILES / "kernelbench_like" / "no_init_inputs.py").read_text())
    (folder / "model_new.py").write_text(new)
    (folder / "kernels" / "mm.cu").write_text(
        "__global__ void mm_kernel(float* c) { c[0] = 0; }\n"
        'extern "C" void mm_launcher(float* c, cudaStream_t stream) { mm_kernel<<<1, 1, 0, stream>>>(c); }\n'
    )
    (folder / "kernels" / "mm_binding.cpp").write_text(
        '#include "../binding_registry.h"\n#include <torch/types.h>\n'
        'extern "C" void mm_launcher(float* c, cudaStream_t stream);\n'
        "torch::Tensor mm(torch::Tensor a, torch::Tensor b) {\n"
        "  auto c = torch::empty({a.size(1), b.size(1)}, a.options());\n"
        "  mm_launcher(c.data_ptr<float>(), c10::cuda::getCurrentCUDAStream()); return c; }\n"
        'void register_mm(pybind11::module& m) { m.def("mm", &mm); }\nREGISTER_BINDING(mm, register_mm);\n'
    )
    return folder


NEW = """import cuda_extension
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return {body}
"""


def test_a_workspace_within_the_rules(tmp_path):
    folder = make_workspace(tmp_path / "ws", NEW.format(body="cuda_extension.mm(A, B)"))
    assert check.main(["--workspace", str(folder), "--device", "cpu", "--json", str(tmp_path / "r.json")]) == 0
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["results"]["violations"] == []
    states = {c["check"]: c["status"] for c in record["results"]["solution"]["checks"]}
    assert set(states.values()) == {"pass"}


def test_a_rule_broken_fails_strictly_and_warns_relaxed(tmp_path):
    folder = make_workspace(tmp_path / "ws", NEW.format(body="cuda_extension.mm(A, B) + A.T @ B"))
    assert check.main(["--workspace", str(folder), "--device", "cpu", "--json", str(tmp_path / "r.json")]) == 1
    violation = json.loads((tmp_path / "r.json").read_text())["results"]["violations"][0]
    assert (violation["rule"], violation["line"], violation["counts"]) == ("forward-compute", 7, True)
    assert check.main(["--workspace", str(folder), "--rules", "relaxed", "--device", "cpu"]) == 0


def test_weights_of_other_names_are_listed(tmp_path):
    folder = make_workspace(tmp_path / "ws", NEW.format(body="cuda_extension.mm(A, B)"))
    shutil.copy(FILES / "kernelbench_like" / "dict_output.py", folder / "model.py")
    (folder / "model_new.py").write_text(
        "import cuda_extension\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
        "    def __init__(self, features):\n"
        "        super().__init__()\n        self.linear = nn.Linear(features, 11)\n\n"
        "    def forward(self, x, mask=None):\n        return cuda_extension.mm(x, self.linear.weight)\n"
    )
    assert check.main(["--workspace", str(folder), "--device", "cpu", "--json", str(tmp_path / "r.json")]) == 1
    checks = json.loads((tmp_path / "r.json").read_text())["results"]["solution"]["checks"]
    state = next(c for c in checks if c["check"] == "state-dict")
    assert state["status"] == "fail"
    assert "lacks lin.weight, lin.bias" in state["sentence"] and "linear.weight" in state["sentence"]
