"""Faults of kernels in plain mode: each is told, and the process goes on to run the next kernel rightly."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from utils.sim import reports
from utils.sim.build import build_sources

SOURCE = Path(__file__).resolve().parent / "kernels" / "faults.cu"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sources([SOURCE], tmp_path_factory.mktemp("faults") / "faults.so")


def fault(library: Path, name: str) -> tuple[str, list[int]]:
    """What the launch threw ("" for nothing), and the first values of its output."""
    function = getattr(ctypes.CDLL(str(library)), f"{name}_fault")
    function.restype = ctypes.c_char_p
    out = (ctypes.c_int * 64)()
    return function(out).decode(), list(out)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("name", "kind", "where"),
    [
        ("null_pointer", "illegal_access", "p[threadIdx.x] = 1;"),
        ("divide", "arithmetic", "7 / by"),
        ("wgmma", "unsupported", "wgmma.fence"),
        ("trap", "trap", "__trap()"),
        ("bounded_launch", "launch_limit", "__launch_bounds__(64)"),
        ("half_a_cluster", "divergent_barrier", "bar.sync 1, 64"),
        ("no_such_rank", "illegal_access", "mapa.shared::cluster"),
        ("tensor_copy", "unsupported", "cp.async.bulk.tensor"),
        ("remote_mbarrier", "unsupported", "mbarrier.arrive.release.cluster.shared::cluster"),
        ("remote_copy", "unsupported", "cp.async.bulk.shared::cluster"),
        ("too_many_arrivals", "invalid_mbarrier", "_, [%0], 4;"),
        ("overwritten_mbarrier", "invalid_mbarrier", "_, [%0], 1;"),
    ],
)
def test_a_fault_says_what_and_where(library: Path, name: str, kind: str, where: str) -> None:
    reports.fetch(library)
    message, _ = fault(library, name)
    assert reports.fault_kind(message) == kind, message
    assert f"faults.cu:{line_of(where)}: " in message
    raw = reports.fetch(library)["reports"]
    assert [r["kind"] for r in raw] == [kind] and raw[0]["fatal"]


def test_a_stack_overflow_is_told_as_one(library: Path) -> None:
    message, _ = fault(library, "overflow_stack")
    assert "stack overflow" in message or "illegal" in message
    reports.fetch(library)


@pytest.mark.parametrize(("order", "seed"), [("default", 0), ("reverse", 0), ("random", 1), ("random", 2)])
@pytest.mark.parametrize("name", ["polls_in_vain", "mbarrier_in_a_cluster"])
def test_a_wait_for_an_mbarrier_that_never_ends_is_told(library: Path, name: str, order: str, seed: int) -> None:
    reports.fetch(library)
    reports.set_schedule(library, order, seed)
    message, _ = fault(library, name)
    reports.set_schedule(library, "default")
    assert reports.fault_kind(message) == "incomplete_mbarrier", message
    assert "1 of " in message and " arrivals are missing" in message
    (raw,) = reports.fetch(library)["reports"]
    assert raw["fatal"] and raw["place"]["line"] > 0 and raw["other_place"]["line"] > 0


def test_a_look_at_an_mbarrier_is_no_wait_for_it(library: Path) -> None:
    message, values = fault(library, "looks_and_goes_on")
    assert message == "" and values == list(range(1, 65))
    assert reports.fetch(library)["reports"] == []


def test_after_a_fault_the_next_kernel_runs(library: Path) -> None:
    fault(library, "null_pointer")
    message, values = fault(library, "good")
    assert message == "" and values == list(range(1, 65))
    reports.fetch(library)


def test_what_is_not_simulated_counts_only_where_it_is_reached(library: Path) -> None:
    message, values = fault(library, "guarded_wgmma")
    assert message == "" and values[0] == 1


def test_a_grid_that_is_no_whole_number_of_clusters_is_refused_as_on_a_device(library: Path) -> None:
    message, values = fault(library, "part_of_a_cluster")
    assert message == "" and values[0] == 0
    (report,) = reports.fetch(library)["reports"]
    assert report["kind"] == "launch_limit" and "clusters (3, 1, 1)" in report["message"]
