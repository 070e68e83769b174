"""Attacks that need a GPU, and those of the corpus that ask the same on it.

All that are selected are handed out at once, those that load the whole machine afterwards; each test waits for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest
import torch
from attack_corpus import ALONE, Attack, Outcome, Pool, build_gpu, corpus, for_gpu, gpu_corpus, missed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

# Whatever works through torch on either device; the rest of the corpus is about this process, not about the device.
_ALSO = ("memo_", "output_", "inputs_", "uninitialised_", "half_", "structure_", "thread_", "weights_", "honest_n")
_CHOSEN = [attack for attack in for_gpu(corpus()) if attack.name.startswith(_ALSO)]
_WORKERS = 6
# For a worker to start, to wait for its turn and to judge.
_PATIENCE = 600

Judge = Callable[[Attack], Outcome]


@pytest.fixture(scope="module")
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    wanted = {
        item.callspec.params["attack"].name: item.callspec.params["attack"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    device = {"device": "cuda:0"}
    many, one = Pool(_WORKERS), Pool(1)
    futures: dict[str, Future[Outcome]] = {}
    try:
        for name, attack in wanted.items():
            if not name.startswith("gpu_"):
                futures[name] = many.submit(attack, device)
        built = tmp_path_factory.mktemp("faulty") / "w"
        built.mkdir()
        said = build_gpu(built)
        assert said == "", said
        for name, attack in wanted.items():
            if name.startswith("gpu_") and not name.startswith(ALONE):
                futures[name] = many.submit(attack, device, str(built))

        def outcome(attack: Attack) -> Outcome:
            start = str(built) if attack.name.startswith("gpu_") else None
            if attack.name not in futures:
                for future in list(futures.values()):
                    future.exception(_PATIENCE)
                return one.submit(attack, device, start).result(_PATIENCE)
            try:
                return futures.pop(attack.name).result(_PATIENCE)
            except BrokenProcessPool:
                # The worker of another attack may have died; alone it shows whose fault it was.
                return one.submit(attack, device, start).result(_PATIENCE)

        yield outcome
    finally:
        many.close()
        one.close()


@pytest.mark.parametrize("attack", gpu_corpus(), ids=lambda attack: attack.name)
def test_gpu_attack(attack: Attack, judge: Judge) -> None:
    assert missed(attack, judge(attack)) == ""


@pytest.mark.parametrize("attack", _CHOSEN, ids=lambda attack: attack.name)
def test_attack_on_the_gpu(attack: Attack, judge: Judge) -> None:
    assert missed(attack, judge(attack)) == ""


def test_the_gpu_works_after_attacks_that_broke_their_context(judge: Judge) -> None:
    """C24: a lost context stays the solution's own."""
    named = {attack.name: attack for attack in gpu_corpus()}
    for name in ("gpu_illegal_access", "gpu_honest", "gpu_device_assert", "gpu_hanging_kernel", "gpu_honest"):
        assert missed(named[name], judge(named[name])) == ""
