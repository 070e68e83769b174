"""Every solution and source of the corpora against the breaches its first line states: rule and line, nothing else.

`evade_*` break a rule in some roundabout way; `honest_*` break none, however much they look like it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from utils.problem.solution import Solution
from utils.rules import RULES, static_violations
from utils.rules.cpp_compute import cpp_compute_violations
from utils.rules.cpp_source import CppSource
from utils.rules.internals import guard_violations
from utils.rules.kernel_files import _torch_in_cu
from utils.rules.libraries import source_violations
from utils.rules.streams import stream_positions, stream_violations

FILES = Path(__file__).parent / "files"
PYTHON = sorted((FILES / "python").glob("*_*.py"))
CPP = sorted((FILES / "cpp").iterdir())


def expected(path: Path) -> list[tuple[str, int]]:
    words = path.read_text().splitlines()[0].split("expect:")[1].split()
    assert words
    return sorted((w.split(":")[0], int(w.split(":")[1])) for w in words if w != "nothing")


def check(path: Path, violations) -> None:
    assert sorted((v.rule, v.line) for v in violations) == expected(path), violations
    for violation in violations:
        assert violation.path == path
        assert violation.sentence and violation.evidence and violation.mend
        assert violation.rule in RULES


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: p.stem)
def test_python(path):
    check(path, static_violations(Solution("extension", path, None), FILES / "python" / "model.py"))


@pytest.mark.parametrize("path", CPP, ids=lambda p: p.name)
def test_cpp(path):
    source = CppSource(path, path.read_bytes())
    found = [
        *cpp_compute_violations(source),
        *source_violations(source),
        *guard_violations(source),
        *stream_violations(source, stream_positions([source])),
        *_torch_in_cu([source]),
    ]
    check(path, found)


def test_the_corpora_are_large_and_fair():
    names = [path.stem for path in [*PYTHON, *CPP]]
    assert len(names) >= 110
    assert sum(name.startswith("honest") for name in names) >= 25


# What a checker of words passes or fails, as public reports have it: the corpus file and the rule that must see it.
PEER_BASELINE = {
    "evade_at_operator.py": "forward-compute",
    "evade_at_matmul.cpp": "cpp-compute",
    "evade_bare_linear.py": "forward-compute",
    "evade_from_import.py": "forward-compute",
    "evade_alias_import.py": "forward-compute",
    "evade_aliased_cuda.py": "reach",
    "evade_created_stream.cu": "stream",
    "evade_model_import.py": "reference",
    "evade_objects.py": "reach",
    "evade_frames.py": "reach",
    "evade_cast_to.py": "forward-compute",
    "honest_pass_and_try.py": None,
    "honest_words.py": None,
}


@pytest.mark.parametrize("name", PEER_BASELINE)
def test_what_a_checker_of_words_gets_wrong(name):
    path = next(p for p in [*PYTHON, *CPP] if p.name == name)
    rules = {rule for rule, _ in expected(path)}
    assert rules == ({PEER_BASELINE[name]} if PEER_BASELINE[name] else set())
