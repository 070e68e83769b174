"""The conformance suite and the planted bugs on the simulator, in every mode and schedule."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import conformance  # noqa: E402
import planted  # noqa: E402
from conformance_answers import ANSWERS  # noqa: E402

from utils.sim import reports  # noqa: E402
from utils.sim.build import build_sources, environment  # noqa: E402


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Libraries of a source file by mode, each built once."""
    folder = tmp_path_factory.mktemp("sim")
    made: dict[tuple[str, str], Path] = {}

    def get(name: str, mode: str) -> Path:
        if (name, mode) not in made:
            made[name, mode] = build_sources([HERE / "kernels" / f"{name}.cu"], folder / f"{name}-{mode}.so", mode)
        return made[name, mode]

    return get


def planted_results(library: Path, file: str, mode: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(HERE / "planted.py"), str(library), file],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment(mode)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def places(found: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(r["kind"], r[which]["line"]) for r in found for which in ("place", "other_place") if r[which]}


def test_there_are_enough_checks() -> None:
    assert len(ANSWERS) >= 150
    assert len(planted.planted("planted")) >= 25 and len(planted.planted("planted_async")) >= 15


@pytest.mark.parametrize(("order", "seed"), [("default", 0), ("reverse", 0), ("random", 1), ("random", 2)])
def test_every_check_gives_the_defined_answer(built: Any, order: str, seed: int) -> None:
    library = built("conformance", "plain")
    reports.set_schedule(library, order, seed)
    results = dict(conformance.run(ctypes.CDLL(str(library)), list(ANSWERS)))
    assert list(results) == list(ANSWERS)
    assert {name: wrong for name, wrong in results.items() if wrong} == {}
    assert reports.fetch(library)["reports"] == []


@pytest.mark.slow
def test_correct_kernels_give_no_report_in_race_mode(built: Any) -> None:
    library = built("conformance", "race")
    results = dict(conformance.run(ctypes.CDLL(str(library)), list(ANSWERS)))
    assert list(results) == list(ANSWERS)
    assert {name: wrong for name, wrong in results.items() if wrong} == {}
    assert [r["text"] for r in reports.fetch(library)["reports"]] == []


@pytest.mark.parametrize("file", planted.FILES)
def test_race_mode_reports_every_planted_bug_at_its_line(built: Any, file: str) -> None:
    results = planted_results(built(file, "race"), file, "race")
    for name, (kind, line) in planted.planted(file).items():
        assert (kind, line) in places(results[name]["reports"]), (name, kind, line, results[name])
        clean = results[f"{name}_clean"]
        assert clean["reports"] == [] and clean["thrown"] == 0, (name, clean)


def test_reports_name_kernel_block_and_thread(built: Any) -> None:
    results = planted_results(built("planted", "race"), "planted", "race")
    report = results["off_by_one_read"]["reports"][0]
    assert report["kernel"] == "off_by_one_read"
    assert report["block"] == [3, 0, 0] and report["thread"] == [63, 0, 0]
    assert "0 bytes after the end of an allocation of 1024 bytes" in report["message"]
    other = results["missing_barrier"]["reports"]
    assert all(r["other_thread"] for r in other if r["kind"] == "race")


@pytest.mark.parametrize("file", planted.FILES)
def test_asan_mode_reports_what_leaves_an_array(built: Any, file: str) -> None:
    results = planted_results(built(file, "asan"), file, "asan")
    for name, (kind, line) in planted.planted(file).items():
        # Whether a block of a cluster may have ended is a matter of what is ordered: race mode's.
        if name == "block_has_ended":
            continue
        if kind in ("out_of_bounds", "misaligned", "launch_limit", "divergent_barrier", "assert"):
            assert (kind, line) in places(results[name]["reports"]), (name, kind, line, results[name])


@pytest.mark.parametrize("file", planted.FILES)
def test_asan_mode_finds_nothing_in_correct_kernels(built: Any, file: str) -> None:
    results = planted_results(built(file, "asan"), file, "asan")
    assert {name for name in planted.planted(file) if results[f"{name}_clean"]["reports"]} == set()


@pytest.mark.parametrize(
    ("file", "stuck"),
    [
        ("planted", ("divergent_barrier", "early_exit", "wrong_shuffle_mask", "too_many_threads", "failed_assert")),
        (
            "planted_async",
            ("bulk_wrong_bytes", "mbarrier_missing_arrival", "mbarrier_uninitialised", "bulk_unfinished"),
        ),
    ],
)
def test_plain_mode_needs_no_checker_for_stuck_threads(built: Any, file: str, stuck: tuple[str, ...]) -> None:
    results = planted_results(built(file, "plain"), file, "plain")
    for name in stuck:
        kind, line = planted.planted(file)[name]
        assert (kind, line) in places(results[name]["reports"]), (name, results[name])
    assert all(results[f"{name}_clean"]["reports"] == [] for name in planted.planted(file))
