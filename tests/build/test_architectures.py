"""Every spelling of TORCH_CUDA_ARCH_LIST, and which GPUs a build covers."""

from __future__ import annotations

import pytest

from utils.build.architectures import Architecture, check_supported, parse_arch_list, uncovered
from utils.build.gpus import Gpu, _selected
from utils.present.outcome import CannotTell

NVCC_13 = [f"sm_{number}" for number in (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)]


def spelled(text: str | None, visible: tuple[tuple[int, int], ...] = ()) -> list[str]:
    return [str(each) for each in parse_arch_list(text, visible, NVCC_13)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9.0", ["9.0a"]),
        ("9.0a", ["9.0a"]),
        ("9.0A", ["9.0a"]),
        ("90", ["9.0a"]),
        ("90a", ["9.0a"]),
        ("sm_90", ["9.0a"]),
        ("sm90", ["9.0a"]),
        ("SM_90a", ["9.0a"]),
        ("compute_90", ["9.0a+PTX"]),
        ("9.0+PTX", ["9.0a+PTX"]),
        ("9.0+ptx", ["9.0a+PTX"]),
        ("Hopper", ["9.0a"]),
        ("hopper+PTX", ["9.0a+PTX"]),
        ("8.0;9.0", ["8.0", "9.0a"]),
        ("8.0,9.0", ["8.0", "9.0a"]),
        ("8.0 9.0", ["8.0", "9.0a"]),
        ("9.0 ; 8.0", ["8.0", "9.0a"]),
        ("9.0;", ["9.0a"]),
        (" 9.0, ", ["9.0a"]),
        ("9.0;9.0a;sm_90", ["9.0a"]),
        ("8.0;8.0+PTX", ["8.0+PTX"]),
        ("Ampere", ["8.0", "8.6"]),
        ("Ampere+PTX", ["8.0", "8.6+PTX"]),
        ("Ada", ["8.9"]),
        ("Volta", ["7.0"]),
        ("10.0", ["10.0"]),
        ("10.0a", ["10.0a"]),
        ("100f", ["10.0f"]),
        ("12.1", ["12.1"]),
        ("121", ["12.1"]),
        ("Common", ["7.5", "8.0", "8.6", "8.9", "9.0a", "10.0", "12.0"]),
    ],
)
def test_spellings(text: str, expected: list[str]) -> None:
    assert spelled(text) == expected


def test_all_is_what_nvcc_lists() -> None:
    assert len(spelled("All")) == len(NVCC_13)
    assert "9.0a" in spelled("all")


@pytest.mark.parametrize("text", [None, "", "  ", ";", " , "])
def test_unset_and_empty_mean_the_gpus_present_else_hopper(text: str | None) -> None:
    assert spelled(text) == ["9.0a"]
    assert spelled(text, ((8, 0), (8, 9))) == ["8.0", "8.9"]


def test_native() -> None:
    assert spelled("native", ((9, 0),)) == ["9.0a"]
    with pytest.raises(CannotTell, match="no GPU is visible"):
        spelled("native")


@pytest.mark.parametrize("text", ["nine", "9", "9.0b", "9.0;x", "sm_", "9..0", "-9.0", "9.0+PTX+PTX", "9.0.1", "$(id)"])
def test_nonsense_is_refused_by_name(text: str) -> None:
    with pytest.raises(CannotTell) as refusal:
        spelled(text)
    bad = text.split(";")[-1]
    assert f"'{bad}' is not an architecture" in str(refusal.value)
    assert "TORCH_CUDA_ARCH_LIST" in str(refusal.value)


def test_flags() -> None:
    assert Architecture(9, 0, "a").gencode() == ["-gencode=arch=compute_90a,code=sm_90a"]
    assert Architecture(8, 0, "", True).gencode() == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
    ]
    # PTX of 9.0a would run on nothing but 9.0.
    assert Architecture(9, 0, "a", True).gencode()[1] == "-gencode=arch=compute_90,code=compute_90"


@pytest.mark.parametrize("text", ["7.0", "9.0;7.0", "10.1", "Volta", "13.0"])
def test_unsupported_architecture_names_entry_variable_compiler_and_list(text: str) -> None:
    with pytest.raises(CannotTell) as refusal:
        check_supported(parse_arch_list(text), NVCC_13, "nvcc 13.0.88 (/opt/nvcc)", f"TORCH_CUDA_ARCH_LIST={text}")
    message = str(refusal.value)
    bad = {"7.0": "7.0", "9.0;7.0": "7.0", "10.1": "10.1", "Volta": "7.0", "13.0": "13.0"}[text]
    assert f"cannot compile for {bad} " in message
    assert f"TORCH_CUDA_ARCH_LIST={text}" in message
    assert "nvcc 13.0.88 (/opt/nvcc)" in message
    assert "7.5 8.0" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "device", "covered"),
    [
        ("8.0", (9, 0), False),
        ("8.0+PTX", (9, 0), True),
        ("9.0", (9, 0), True),
        ("9.0", (10, 0), False),
        ("9.0+PTX", (10, 0), True),
        ("8.0", (8, 6), True),
        ("8.6", (8, 0), False),
        ("8.9", (8, 6), False),
        ("8.6;9.0", (9, 0), True),
        ("10.0a", (10, 3), False),
        ("10.0f", (10, 3), True),
    ],
)
def test_coverage(text: str, device: tuple[int, int], covered: bool) -> None:
    assert (uncovered(parse_arch_list(text), [device]) == []) is covered


def test_visible_devices_are_chosen_as_the_driver_does() -> None:
    gpus = [Gpu("a", (9, 0), "GPU-aaaa"), Gpu("b", (8, 0), "GPU-bbbb"), Gpu("c", (7, 5), "GPU-cccc")]
    names = lambda selection: [gpu.name for gpu in _selected(gpus, selection)]  # noqa: E731
    assert names(None) == ["a", "b", "c"]
    assert names("") == []
    assert names("2,0") == ["c", "a"]
    assert names("1,7,0") == ["b"]
    assert names("GPU-bb") == ["b"]
    assert names("-1") == []
