"""Parts of the judge on their own: staging, the built module, memory, draws, causes, failures, the verdict's order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from utils.judge import causes, failure, reference
from utils.judge.causes import Wrong
from utils.judge.comparing import Leaf, Tolerance, rounded_up, tell
from utils.judge.draws import partly, trial_seeds
from utils.judge.extension import Extension, check_covers, find_extension
from utils.judge.memory import Block
from utils.judge.reference import Reference, widened
from utils.judge.sandbox import Output, Policy, hidden, import_path, needed
from utils.judge.staging import digest, local_modules, prepare
from utils.judge.verdict import Finding, Findings, reasons
from utils.native.compare import compare
from utils.present.outcome import CannotTell, No
from utils.problem.loader import module_path
from utils.problem.problem import Problem, load_problem
from utils.problem.solution import find_solution
from utils.problem.workspace import ROOT, Workspace

# ---- staging -------------------------------------------------------------------------------------------------------


def test_local_modules_are_found_through_one_another(tmp_path: Path) -> None:
    (tmp_path / "model_new.py").write_text(
        "import alpha_of_mine\nfrom package_of_mine.part import x\nimport torch\nimport json\n"
    )
    (tmp_path / "alpha_of_mine.py").write_text("def f():\n    import beta_of_mine\n")
    (tmp_path / "beta_of_mine.py").write_text("")
    (tmp_path / "unused_of_mine.py").write_text("")
    (tmp_path / "json.py").write_text("")
    (tmp_path / "model.py").write_text("")
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "__init__.py").write_text("")
    (tmp_path / "package_of_mine" / "part.py").write_text("import model\n")
    files, notes = local_modules(tmp_path / "model_new.py")
    names = {str(file.relative_to(tmp_path)) for file in files}
    assert names == {"alpha_of_mine.py", "beta_of_mine.py", "package_of_mine/__init__.py", "package_of_mine/part.py"}
    assert len(notes) == 1 and "json" in notes[0]


def test_the_stage_holds_no_problem_and_the_runner_may_not_write_what_was_hashed(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("secret = 1\n")
    (tmp_path / "model_new.py").write_text("import torch\n")
    native = tmp_path / "native.so"
    native.write_bytes(b"not really")
    stage = prepare(find_solution(Workspace(tmp_path)), None, native)
    try:
        assert not list(stage.root.rglob("model.py"))
        assert stage.entry.read_text() == "import torch\n"
        assert (stage.harness / "utils/judge/runner.py").is_file()
        assert not (stage.harness / "utils/judge/reference.py").exists()
        assert not any(path.stat().st_mode & 0o022 for path in stage.solution.rglob("*"))
    finally:
        stage.remove()
    assert not stage.root.exists()


def test_what_the_runner_sees_and_does_not(tmp_path: Path) -> None:
    (tmp_path / "model_new.py").write_text("import torch\n")
    native = tmp_path / "native.so"
    native.touch()
    stage = prepare(find_solution(Workspace(tmp_path)), None, native)
    try:
        masks = hidden(stage, Policy(hide=(tmp_path / "elsewhere",)))
        assert str(ROOT) in masks and str(tmp_path) in masks and str(Path.home()) in masks
        assert not {"/", "/usr", "/etc", "/proc", "/dev"} & set(masks)
        assert ROOT not in needed(stage) and Path("/") not in needed(stage)
        assert str(ROOT) not in import_path(stage) and "" not in import_path(stage)
        assert any((Path(entry) / "torch" / "__init__.py").is_file() for entry in import_path(stage))
    finally:
        stage.remove()


# ---- the built module ----------------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path) -> Workspace:
    from utils.build.digest import sources_digest

    workspace = Workspace(tmp_path)
    workspace.kernels.mkdir()
    (workspace.kernels / "k.cu").write_text("// a kernel\n")
    (workspace.kernels / "k_binding.cpp").write_text("// its binding\n")
    workspace.model_new.write_text("import cuda_extension\n")
    module_path(workspace).write_bytes(b"a module")
    workspace.build.mkdir()
    facts = {"sources_sha256": sources_digest(workspace), "module_sha256": digest(module_path(workspace))}
    (workspace.build / "build_facts.json").write_text(json.dumps(facts))
    return workspace


def test_a_fresh_module_is_taken(built: Workspace) -> None:
    found = find_extension(find_solution(built))
    assert found is not None and found.path == module_path(built)


def test_a_missing_stale_or_swapped_module_is_not(built: Workspace) -> None:
    solution = find_solution(built)
    module_path(built).write_bytes(b"another module")
    with pytest.raises(No, match="not the file that the build made"):
        find_extension(solution)
    (built.kernels / "k.cu").write_text("// a changed kernel\n")
    with pytest.raises(CannotTell, match="older than the sources"):
        find_extension(solution)
    (built.build / "build_facts.json").unlink()
    with pytest.raises(CannotTell, match="no record"):
        find_extension(solution)
    module_path(built).unlink()
    with pytest.raises(CannotTell, match=r"is not built .* bash utils/compile\.sh"):
        find_extension(solution)


@pytest.mark.parametrize(("names", "fits"), [(["8.0"], False), (["8.0+PTX"], True), (["9.0a"], True), ([], True)])
def test_a_module_for_another_architecture_is_told_apart(names: list[str], fits: bool) -> None:
    extension = Extension(Path("x.so"), {"architectures": names})
    if fits:
        check_covers(extension, (9, 0), "a GPU")
        return
    with pytest.raises(CannotTell, match=r"built for sm_80, the device \(a GPU\) is sm_90; rebuild with 9\.0"):
        check_covers(extension, (9, 0), "a GPU")


# ---- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 4])
def test_slots_do_not_touch_and_guards_see_what_passes_their_ends(shift: int) -> None:
    block = Block(torch.device("cpu"), [1000, 0, 24], shift)
    first, _, last = block.slots
    block.bytes(first).fill_(1)
    block.bytes(last).fill_(2)
    assert block.broken_guards() == []
    assert bool((block.bytes(first) == 1).all()) and block.bytes(first).data_ptr() % 8 == (shift or 0)
    begin = block._places[last][0]
    block.arena.tensor(begin + 24, [1], [1], torch.uint8).add_(1)
    assert block.broken_guards() == [last]
    assert block.broken_guards() == []
    with pytest.raises(ValueError, match="does not fit"):
        block.tensor(last, 8, [5], [1], torch.float32)
    block.close()


# ---- draws and the reference ---------------------------------------------------------------------------------------


def test_seeds_are_the_runs_own_and_differ() -> None:
    one, two, again = trial_seeds(1, 1), trial_seeds(1, 2), trial_seeds(1, 1)
    assert one == again and not set(one.values()) & set(two.values())


def test_a_partly_changed_draw_differs_in_an_eighth() -> None:
    x, other = [torch.zeros(64, 2), 3, {"a": torch.zeros(8)}], [torch.ones(64, 2), 4, {"a": torch.ones(8)}]
    made = partly(x, other, seed=5)
    assert int(made[0].sum()) == 16 and made[1] == 3 and int(made[2]["a"].sum()) == 1
    assert int(x[0].sum()) == 0


MODEL = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)
        self.bn = nn.BatchNorm1d(6)
        self.register_buffer("table", torch.arange(6.0))
    def forward(self, x):
        return self.bn(self.lin(x)) + self.table
def get_inputs():
    return [torch.randn(4, 6)]
"""


@pytest.mark.parametrize("slow", [False, True])
def test_weights_are_redrawn_and_constant_ones_moved_but_tables_stay(slow: bool, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    reference = Reference(load_problem(tmp_path / "model.py"), torch.device("cpu"), seed=1, train=False, small=False)
    reference._slow = slow
    before = {name: value.clone() for name, value in reference.state().items()}
    how = reference.redraw(7, perturb=True)
    after = reference.state()
    assert how == ("elements shuffled" if slow else "redrawn") + ", constant ones moved"
    for name in ("lin.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"):
        assert not torch.equal(before[name], after[name]), name
    assert torch.equal(before["table"], after["table"]) and bool((after["bn.running_var"] > 0).all())
    if slow:
        assert torch.equal(before["lin.weight"].flatten().sort()[0], after["lin.weight"].flatten().sort()[0])


def test_drawing_random_numbers_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    device = torch.device("cpu")
    reference = Reference(load_problem(tmp_path / "model.py"), device, seed=1, train=False, small=False)
    assert reference.draws_random([torch.randn(4, 6)], {}, seed=3)[1] is False
    (tmp_path / "other.py").write_text(MODEL.replace("+ self.table", "+ torch.rand(6)"))
    other = Reference(load_problem(tmp_path / "other.py"), device, seed=1, train=False, small=False)
    assert other.draws_random([torch.randn(4, 6)], {}, seed=3)[1] is True


def test_only_floating_tensors_are_widened() -> None:
    values = widened(
        [torch.ones(1), torch.ones(1, dtype=torch.long), {"c": torch.ones(1, dtype=torch.complex64)}, 3, None]
    )
    assert [values[0].dtype, values[1].dtype, values[2]["c"].dtype] == [torch.float64, torch.int64, torch.complex128]
    assert values[3:] == [3, None]


# ---- sentences -----------------------------------------------------------------------------------------------------


def test_a_tolerance_printed_as_enough_is_enough() -> None:
    for value in (0.0123456, 9.999e-5, 1.0, 123456.7, 3e-30):
        assert float(rounded_up(value)) >= value
        assert float(rounded_up(value)) <= value * 1.011


def test_a_failed_comparison_tells_how_many_where_and_how_near() -> None:
    expected = torch.zeros(64, 32)
    actual = expected.clone()
    actual[8:10] = 0.02
    sentence = tell("out", compare(expected, actual, 1e-2, 1e-2), Tolerance(1e-2, 1e-2))
    assert sentence.startswith("out: 64 of 2,048 elements differ; worst at [8, 0]: expected 0, got 0.02")
    assert "all of dim 1" in sentence and "would pass with atol 0.02" in sentence


def test_causes_are_told_apart() -> None:
    now, old = torch.randn(50), torch.randn(50)

    def wrong(slot: torch.Tensor) -> Wrong:
        return Wrong([slot], [now], [Leaf("out", "differs", compare(now, slot, 1e-2, 1e-2))])

    assert wrong(old.clone()).is_rather([old])
    assert not wrong(torch.zeros(50)).is_rather([old])
    assert not wrong(now + 0.5).is_rather([old])
    shown = wrong(torch.full((50,), 2.0)).from_values()
    assert shown is not None and shown[0] == "trivial"
    assert wrong(old).from_values() is None
    assert causes.OLD_VALUES[0] == "stale"


@pytest.mark.parametrize(
    ("status", "output", "kind", "words"),
    [
        (-11, "", "crash", "SIGSEGV"),
        (-9, "", "crash", "SIGKILL"),
        (0, "", "exit", "exit code 0"),
        (3, "", "exit", "exit code 3"),
        (None, "", "protocol", "closed the connection"),
        (-6, "CUDA error: device-side assert triggered", "gpu_fault", "device-side assert"),
    ],
)
def test_an_ended_process_is_named(status: int | None, output: str, kind: str, words: str) -> None:
    made = failure.ended("call", status, output)
    assert made.kind == kind and words in made.sentence


def test_a_cuda_fault_ends_the_runner_and_a_python_error_does_not() -> None:
    error = {"where": "forward", "type": "RuntimeError", "message": "boom", "line": "model_new.py:3", "trace": ""}
    assert failure.raised("call", error).alive
    fault = failure.raised("call", {**error, "message": "CUDA error: an illegal memory access was encountered"})
    assert fault.kind == "gpu_fault" and not fault.alive
    assert failure.raised("call", {**error, "type": "OutOfMemoryError"}).kind == "out_of_memory"
    missing = {**error, "type": "ModuleNotFoundError", "message": "No module named 'cuda_extension'"}
    assert "compile.sh" in failure.raised("import", missing).sentence


def test_causes_come_before_effects_and_the_like_is_counted() -> None:
    findings = Findings()
    for call in (1, 2, 3):
        findings.fail("values", f"wrong {call}", trial=1, call=call)
    findings.fail("rule", "a rule")
    findings.fail("stale", "old answers", trial=2, call=1)
    findings.warn("sandbox", "no matter")
    told = reasons(findings.all)
    assert told == ["trial 2 call 1: old answers", "trial 1 call 1: wrong 1 (and 2 more like it)", "a rule"]
    assert findings.failed and not Findings().failed
    assert str(Finding("note", "x", "said")) == "said"


def test_output_is_kept_in_part_and_made_printable() -> None:
    class Piped:
        def __init__(self, data: bytes) -> None:
            read, write = os.pipe()
            self.stdout = os.fdopen(read, "rb")
            empty, end = os.pipe()
            self.stderr = os.fdopen(empty, "rb")
            os.close(end)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(data)

    output = Output(Piped(b"a\x1b[31mPASS\n"))  # type: ignore[arg-type]
    output.join()
    assert output.text() == "a\ufffd[31mPASS\n"


def counting(folder: Path, body: str) -> Problem:
    """A problem that notes where each draw was made, in TRIED."""
    path = folder / "model.py"
    path.write_text(
        "import torch\nfrom torch import nn\nTRIED = []\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        return x\n\ndef get_inputs():\n    TRIED.append(torch.get_default_device().type)\n"
        f"    {body}\n\ndef get_init_inputs():\n    return []\n"
    )
    return load_problem(path)


def test_large_inputs_are_drawn_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here there is no such device, so the draw fails there and is made on the host, under the same seed."""
    problem = counting(tmp_path, "x = torch.rand(1 << 10); return [x, x[3:]]")
    elsewhere = torch.device("cuda:77")
    expected = reference.drawn(problem, 3, False)
    assert problem.module.TRIED == ["cpu"]
    for _ in range(2):
        assert torch.equal(reference.drawn(problem, 3, False, device=elsewhere)[0], expected[0])
    assert problem.module.TRIED == ["cpu", "meta", "cpu", "cpu"]
    # Views share the bytes of what they view.
    for most, tried in ((1 << 12, ["cpu"]), ((1 << 12) - 1, ["cuda", "cpu"])):
        problem.module.TRIED.clear()
        monkeypatch.setattr(reference, "_LARGE", most)
        assert torch.equal(reference.drawn(problem, 3, False, device=elsewhere)[0], expected[0])
        assert tried == problem.module.TRIED


def test_inputs_whose_size_cannot_be_told_beforehand_are_drawn_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = counting(tmp_path, "x = torch.rand(1 << 10); x[0] = x.sum().item(); return [x]")
    monkeypatch.setattr(reference, "_LARGE", 1)
    one, two = (reference.drawn(problem, 3, False, device=torch.device("cuda:77"))[0] for _ in range(2))
    assert torch.equal(one, two) and problem.module.TRIED == ["meta", "cpu", "cpu"]
