"""Where a verification runs: a CUDA device, the CPU, or the simulator standing in for a GPU."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from utils.present.outcome import CannotTell
from utils.problem.solution import Solution


@dataclass(frozen=True)
class Place:
    """`device` is a torch device string; `simulated`: kernels run on the simulator; `small`: shapes are small ones."""

    device: str
    simulated: bool = False

    @property
    def small(self) -> bool:
        return self.device == "cpu"


def choose(asked: str | None, solution: Solution) -> Place:
    """The device asked for, or the best there is. Decided without torch, which takes seconds to import.

    Raises CannotTell for names that are none and for devices that are not there.
    """
    from utils.build.gpus import visible_gpus

    if asked is None:
        if visible_gpus():
            return Place("cuda:0")
        if solution.kind == "python":
            return Place("cpu")
        if solution.kind == "extension" and importlib.util.find_spec("utils.sim.build") is not None:
            return Place("cpu", simulated=True)
        raise CannotTell(
            "no NVIDIA GPU is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES), and only a workspace with "
            "kernels/ can be simulated"
        )
    if asked == "cpu":
        if solution.kind == "extension":
            raise CannotTell("kernels/ cannot run on the CPU as they are; give --device sim for the simulator")
        return Place("cpu")
    if asked == "sim":
        return Place("cpu", simulated=True)
    kind, _, number = asked.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise CannotTell(f"--device {asked} is none; give cuda, cuda:N, cpu or sim")
    index = int(number or 0)
    gpus = visible_gpus()
    if index >= len(gpus):
        raise CannotTell(
            f"there is no cuda:{index}: {len(gpus)} GPUs are visible"
            if gpus
            else f"there is no {asked}: no NVIDIA GPU is visible"
        )
    return Place(f"cuda:{index}")
