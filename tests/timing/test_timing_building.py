"""Who builds which baseline when, with sessions made of a few functions."""

import threading
from contextlib import ExitStack
from itertools import chain
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from utils.judge.failure import RunnerFailed
from utils.judge.thrift import Thrift
from utils.present.outcome import CannotTell
from utils.timing import building
from utils.timing.baselines import Built
from utils.timing.building import Baselines
from utils.timing.run import Options
from utils.timing.variants import MODES, Variant, process_of
from utils.timing.work import Work


class FakeSession:
    """Builds at once, or fails as `broken` says: by the process's name at `ready`, by the mode when it is prepared."""

    broken: ClassVar[dict] = {}
    counted: ClassVar[object] = Work(8, 0, 4, 4, 4, {})
    made: ClassVar[list] = []

    def __init__(self, problem, device, precision, **_):
        self.precision, self.alive, self.built, self.facts, self.prepared = precision, True, {}, {}, []
        self.thrift = Thrift.NONE
        self.made.append(self)

    def ready(self):
        if self.precision in self.broken:
            raise RunnerFailed("harness", self.broken[self.precision], "hello")

    def prepare(self, variant, inputs):
        self.prepared.append(variant.mode)
        error = self.broken.get(variant.mode)
        self.alive = self.alive and error is None
        self.built[variant.mode] = built = Built(variant, error=error)
        return built

    def work(self, inputs):
        return self.counted

    def close(self):
        self.alive = False


TRIAL = SimpleNamespace(state={"weight": torch.zeros(2, 2)}, first=SimpleNamespace(args=[]))


@pytest.fixture
def bases(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "BaselineSession", FakeSession)
    monkeypatch.setattr(building, "Stand", lambda session, trial, seed: SimpleNamespace(session=session, inputs=None))
    monkeypatch.setattr(building, "_difference", lambda side: 0.0)
    monkeypatch.setattr(FakeSession, "broken", {})
    monkeypatch.setattr(FakeSession, "made", [])
    with ExitStack() as stack:
        yield Baselines(Options(None, None, "cuda:0", modes=MODES), stack, tmp_path / "lock")


def quietly(text):
    pass


def test_no_two_modes_share_a_process_but_eager_and_the_official_one():
    names = {
        variant: process_of(variant) for variant in (Variant(mode, p) for mode in MODES for p in ("default", "tf32"))
    }
    assert names[Variant("eager")] == names[Variant("compile")]
    assert len(set(names.values())) == len(names) - 2
    assert not {names[v] for v in names if v.precision == "tf32"} & {names[v] for v in names if v.precision != "tf32"}


def test_everything_is_built_before_the_judge_asks_for_it(bases):
    bases.begin(["default", "tf32"])
    bases.know(TRIAL)
    for begun in bases._begun.values():
        begun.result(10)
    assert sorted(chain.from_iterable(session.prepared for session in FakeSession.made)) == sorted(2 * MODES)
    before = [list(session.prepared) for session in FakeSession.made]
    sides = bases.finish("tf32", quietly)
    assert {side.name for side in sides} == {Variant(mode, p).key for mode in MODES for p in ("default", "tf32")}
    assert [session.prepared for session in FakeSession.made] == before


def test_a_precision_that_the_solution_does_not_have_is_ended(bases):
    bases.begin(["default", "tf32"])
    bases.know(TRIAL)
    sides = bases.finish("default", quietly)
    assert {side.name for side in sides} == set(MODES)
    assert all(session.alive == (session.precision == "default") for session in FakeSession.made)


@pytest.mark.parametrize(
    "counted, dtype", [(Work(0, 8, 4, 4, 4, {}), torch.float32), (Work(8, 0, 4, 4, 4, {}), torch.float16)]
)
def test_nothing_is_built_with_tf32_for_a_problem_that_has_no_fp32_products(bases, monkeypatch, counted, dtype):
    monkeypatch.setattr(FakeSession, "counted", counted)
    bases.begin(["default", "tf32"])
    bases.know(SimpleNamespace(state={"weight": torch.zeros(2, dtype=dtype)}, first=SimpleNamespace(args=[])))
    for begun in bases._begun.values():
        begun.result(10)
    assert bases.work() is counted
    assert all(bool(session.prepared) == (session.precision == "default") for session in FakeSession.made)
    # Wanted all the same, they are built then.
    assert len(bases.finish("tf32", quietly)) == 8


def test_work_that_cannot_be_counted_is_a_sentence_and_ends_nothing(bases, monkeypatch):
    monkeypatch.setattr(FakeSession, "counted", "forward does not run on meta tensors")
    bases.begin(["default", "tf32"])
    bases.know(TRIAL)
    assert bases.work() == "forward does not run on meta tensors"
    assert len(bases.finish("tf32", quietly)) == 8


def test_one_that_nobody_foresaw_is_started_then(bases):
    bases.begin(["default", "tf32"])
    bases.know(TRIAL)
    assert {side.variant.precision for side in bases.finish("bf16", quietly)} == {"default", "bf16"}


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_a_mode_that_takes_its_process_down_takes_no_other_down(bases, mode):
    FakeSession.broken = {mode: "it did not end within 300 s"}
    bases.begin(["default"])
    bases.know(TRIAL)
    sides = bases.finish("default", quietly)
    assert {side.name for side in sides} == set(MODES) - {mode}
    assert bases.built[mode].error == "it did not end within 300 s"


def test_a_precision_whose_processes_do_not_start_is_a_reason_and_the_reference_an_end(bases):
    FakeSession.broken = {"tf32": "no memory"}
    bases.begin(["default", "tf32"])
    bases.know(TRIAL)
    assert {side.variant.precision for side in bases.finish("tf32", quietly)} == {"default"}
    assert "no memory" in bases.built["compile/tf32"].error


def test_without_the_official_process_nothing_can_be_told(bases):
    FakeSession.broken = {"default": "no memory"}
    bases.begin(["default"])
    bases.know(TRIAL)
    assert "could not be counted: no memory" in bases.work()
    with pytest.raises(CannotTell, match="the reference could not be set up in its own process: no memory"):
        bases.finish("default", quietly)


def test_where_memory_is_short_one_process_builds_all_of_a_precision_after_verification(bases):
    bases.begin(["default", "tf32"])
    bases.options = Options(None, None, "cuda:0", modes=MODES, build_alone=True, thrift=Thrift.DEVICE)
    bases.gather()
    bases.know(TRIAL)
    for begun in bases._begun.values():
        begun.result(10)
    alive = [session for session in FakeSession.made if session.alive]
    assert sorted(session.precision for session in alive) == ["default", "tf32"]
    assert not any(session.prepared for session in alive)
    assert bases.work() is FakeSession.counted
    assert len(bases.finish("tf32", quietly)) == 8
    assert all(sorted(session.prepared) == sorted(MODES) and session.thrift is Thrift.DEVICE for session in alive)


def test_the_judge_keeps_the_compilers_from_the_gpu_while_it_works_there(bases, tmp_path):
    from utils.timing.quiet import Quiet

    other, came = Quiet(tmp_path / "lock"), threading.Event()

    def measure():
        with other.hold():
            came.set()

    with bases.alone():
        thread = threading.Thread(target=measure)
        thread.start()
        assert not came.wait(0.1)
    assert came.wait(5)
    thread.join()
