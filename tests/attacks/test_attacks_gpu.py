"""Attacks that need a GPU, and the rest of the corpus on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from attack_corpus import Attack, Pool, build_gpu, corpus, gpu_corpus, missed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

# Whatever works through torch on either device; the rest of the corpus is about this process, not about the device.
_ALSO = ("memo_", "output_", "inputs_", "uninitialised_", "half_", "structure_", "thread_", "weights_", "honest_n")
# About memory of the host.
_HOST_ONLY = ("structure_numpy", "structure_meta", "structure_quantised")
_CHOSEN = [attack for attack in corpus() if attack.name.startswith(_ALSO) and attack.name not in _HOST_ONLY]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("faulty") / "w"
    folder.mkdir()
    said = build_gpu(folder)
    assert said == "", said
    return str(folder)


@pytest.mark.parametrize("attack", gpu_corpus(), ids=lambda attack: attack.name)
def test_gpu_attack(attack: Attack, pool: Pool, built: str) -> None:
    assert missed(attack, pool.submit(attack, {"device": "cuda:0"}, built).result(600)) == ""


@pytest.mark.parametrize("attack", _CHOSEN, ids=lambda attack: attack.name)
def test_attack_on_the_gpu(attack: Attack, pool: Pool) -> None:
    assert missed(attack, pool.submit(attack, {"device": "cuda:0"}).result(600)) == ""


def test_the_gpu_works_after_attacks_that_broke_their_context(pool: Pool, built: str) -> None:
    """C24: a lost context stays the solution's own."""
    named = {attack.name: attack for attack in gpu_corpus()}
    for name in (
        "gpu_illegal_access",
        "gpu_honest",
        "gpu_device_assert",
        "gpu_honest",
        "gpu_hanging_kernel",
        "gpu_honest",
    ):
        assert missed(named[name], pool.submit(named[name], {"device": "cuda:0"}, built).result(600)) == ""
