"""What the problem itself is like, before any solution is judged: does the test mean anything, how exact is eager?

A separate instance of Model is run on the draws of trial 1. Trivial answers (zeros, a constant, a constant per channel,
an input passed through, the answer to other inputs, the answer with other weights) are compared with its output. Where
one of them would pass, the tolerance for that output is tightened to a fraction of the distance to it, never below what
rounding in the output's own precision needs; where even then it passes, the output carries no information, and the
judge says so. The answer in fp64 tells how far eager fp32 and TF32 are from exact, to class the solution's error.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import torch

from utils.judge import reference as references
from utils.judge import structure
from utils.judge.clock import Clock
from utils.judge.comparing import Tolerance
from utils.judge.draws import trial_seeds
from utils.judge.reference import Reference
from utils.judge.shortage import give_back, is_shortage
from utils.judge.thrift import Thrift, enough, needed
from utils.judge.trials import Settings
from utils.judge.verdict import Findings
from utils.native.compare import Comparison, compare
from utils.present.outcome import CannotTell
from utils.problem.problem import Problem

# A solution's error is of a class when it is at most this many times the error that class itself shows.
_SAME_CLASS = 8.0
# Units in the last place of a class, relative to the rms of the result, where it cannot be measured.
_UNITS = {"fp32": 2.0**-24, "TF32/fp16": 2.0**-11, "bf16": 2.0**-8}
_OTHER_WEIGHTS = "the answer with other weights"
# What honest rounding may need: another order of summation beyond eager's own error, and approximate functions
# (__expf, rsqrtf and the like lose some bits) relative to the result.
_HONEST_ERRORS, _HONEST_ULPS = 16.0, 128.0
# A tightened tolerance is this many times the usual one, in units of the distance to the nearest trivial answer: 5 % of
# it by default, which no trivial answer comes near and which half precision inside the solution mostly keeps.
_SHARE, _LARGEST_SHARE = 5.0, 0.25


@dataclass
class OutputStudy:
    """One output tensor: which trivial answers pass, the tolerance that follows, and errors against fp64."""

    path: str
    rms: float
    peak: float
    trivial: list[str] = field(default_factory=list)
    still_trivial: list[str] = field(default_factory=list)
    tolerance: Tolerance | None = None
    eager_error: float | None = None  # rms error of eager in the problem's own precision against fp64
    tf32_error: float | None = None


@dataclass
class Study:
    """All outputs; `tolerances` holds those that differ from the command line's."""

    outputs: list[OutputStudy]
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    perturb: bool = True
    draws_random: bool = False
    thrift: Thrift = Thrift.NONE
    share: float = 0.0  # of all memory of the device that all copies take at the worst moment, without thrift
    double: list[torch.Tensor] | None = None
    # Inputs of trial 1 by their seeds, drawn here already, on the device and as they were drawn.
    draws: dict[int, list[Any]] = field(default_factory=dict)
    not_done: str = ""

    def precision_of(self, given: list[torch.Tensor]) -> dict[str, Any]:
        """The class of the solution's error, from what it returned on trial 1 call 1; frees the fp64 answer."""
        exact, self.double = self.double, None
        if exact is None:
            return {"class": "unknown", "why": self.not_done or "no floating output"}
        worst: dict[str, Any] = {}
        for study, truth, value in zip(self.outputs, exact, given, strict=True):
            if (not value.is_floating_point() and not value.is_complex()) or study.eager_error is None:
                continue
            found = compare(truth, value, 0.0, 0.0, strict=False, locate=False)
            scale = found.rms_expected or 1.0
            name = _class_of(found.rms_error, study, scale, value.dtype)
            made = {
                "class": name,
                "output": study.path,
                "relative_rms_error": found.rms_error / scale,
                "max_abs_error": found.max_abs,
                "eager_relative_rms_error": study.eager_error / scale,
                "tf32_relative_rms_error": None if study.tf32_error is None else study.tf32_error / scale,
            }
            if not worst or CLASSES.index(name) > CLASSES.index(worst["class"]):
                worst = made
        return worst or {"class": "exact", "why": "no floating output"}


CLASSES = ("fp32", "TF32/fp16", "bf16", "worse")


def study_problem(
    problem: Problem,
    device: torch.device,
    settings: Settings,
    findings: Findings,
    *,
    thrift: Thrift = Thrift.NONE,
    clock: Clock | None = None,
) -> Study:
    """Raises CannotTell when Model itself does not run. The study's thrift is `thrift` at least."""
    seeds = trial_seeds(settings.seed, 1)
    clock = clock or Clock()
    room = free_memory(device)
    with references.full_precision():
        with clock.part("draw weights"):
            model = Reference(problem, device, seed=seeds["construct"], train=settings.train, small=settings.small)
            if model.state():
                model.redraw(seeds["weights"], perturb=False)
        with clock.part("draw inputs"):
            drawn = references.drawn(problem, seeds["x"], settings.small, device=device)
        given = _bytes(drawn)
        thrift = enough(given, 0, room, thrift)
        x = references.placed(drawn, device)
        with clock.part("reference"):
            value, random_ = model.draws_random(x if thrift else copied(x), {}, seed=seeds["call"])
        tree = references.describe(value)
        expected = [tensor if thrift else tensor.clone() for tensor in references.tensors(value)]
        del value
        made = _bytes(expected)
        thrift = enough(given, made, room, thrift)
        paths = [path for path, _ in structure.tensors(tree)]
        study = Study(
            [_first_look(path, tensor) for path, tensor in zip(paths, expected, strict=True)],
            draws_random=random_,
            thrift=thrift,
            share=needed(Thrift.NONE, given, made) / total_memory(device),
        )
        if random_:
            findings.note(
                "random", "Model draws random numbers in forward; both sides draw from generators seeded alike"
            )
        if thrift:
            study.not_done = "the device's memory is too small for another copy in fp64"
            findings.note(
                "memory",
                f"inputs of {given / 2**30:.1f} GiB and outputs of {made / 2**30:.1f} GiB leave little "
                "memory: not done are late delivery, moved inputs, "
                "results held over calls, fp64, and comparison with the answers to other inputs and weights",
            )
            answers = [_constants(tensor) for tensor in expected]
        else:
            if device.type == "cuda":
                study.draws[seeds["x"]] = x
            with clock.part("fp64"):
                _measure_precision(study, model, x, expected, seeds, random_)
            with clock.part("trivial answers"):
                answers = _trivial_answers(problem, device, settings, model, x, expected, seeds, study)
    for index, output in enumerate(study.outputs):
        _settle(output, expected[index], answers[index], settings, study, findings)
    del answers, expected, model
    give_back()
    return study


def _told_by_moved_weights(answers: list[tuple[str, torch.Tensor]], names: list[str], settings: Settings) -> bool:
    """Whether the answer under moved weights is told from those trivial answers that the constructed weights allow."""
    moved = next((answer for name, answer in answers if name == _OTHER_WEIGHTS), None)
    if moved is None or _OTHER_WEIGHTS in names or "the answer to other inputs" in names:
        return False
    others = [*_constants(moved), *((name, answer) for name, answer in answers if name.endswith("passed through"))]
    return not any(compare(moved, answer, settings.atol, settings.rtol, locate=False).passed for _, answer in others)


def copied(values: Any) -> Any:
    """Fresh copies of every tensor of an argument list; strides are kept where they are dense."""
    if isinstance(values, torch.Tensor):
        return values.detach().clone().requires_grad_(values.requires_grad)
    if isinstance(values, list):
        return [copied(item) for item in values]
    if isinstance(values, tuple):
        return type(values)(*map(copied, values)) if hasattr(values, "_fields") else tuple(map(copied, values))
    if isinstance(values, dict):
        return {key: copied(item) for key, item in values.items()}
    return values


def free_memory(device: torch.device) -> int:
    """Bytes that may still be had on the device, or of the machine's memory; what torch keeps for later counts."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def total_memory(device: torch.device) -> int:
    """Bytes of the device, or of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _bytes(values: Any) -> int:
    if isinstance(values, torch.Tensor):
        return values.nbytes
    if isinstance(values, (list, tuple)):
        return sum(map(_bytes, values))
    return sum(map(_bytes, values.values())) if isinstance(values, dict) else 0


def _first_look(path: str, tensor: torch.Tensor) -> OutputStudy:
    own = compare(tensor, tensor, 0.0, 0.0, locate=False)
    return OutputStudy(path, own.rms_expected, own.peak)


def _measure_precision(
    study: Study, model: Reference, x: list[Any], expected: list[torch.Tensor], seeds: dict[str, int], random_: bool
) -> None:
    """The fp64 answer and the distance of eager from it; says why where it cannot be had."""
    if random_:
        study.not_done = "forward draws random numbers, which differ between precisions"
        return
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in expected):
        study.not_done = "no output is a floating tensor"
        return
    try:
        exact = references.tensors(model.double(copied(x), {}, seed=seeds["call"]))
        if [tensor.shape for tensor in exact] != [tensor.shape for tensor in expected]:
            raise ValueError("in fp64 the outputs have other shapes")
        for output, truth, value in zip(study.outputs, exact, expected, strict=True):
            if value.is_floating_point() or value.is_complex():
                output.eager_error = compare(truth, value, 0.0, 0.0, strict=False, locate=False).rms_error
        study.double = exact
    except Exception as error:
        said = references.first_line(error)[:120]
        study.not_done = f"Model does not run in fp64 ({type(error).__name__}: {said})"
        if is_shortage(error):
            study.not_done = "fp64 does not fit into memory"
    if study.double is None or expected[0].device.type != "cuda":
        return
    try:
        with references.tensor_float_32():
            rough = references.tensors(model.run(copied(x), {}, seed=seeds["call"]))
        for output, truth, value in zip(study.outputs, study.double, rough, strict=True):
            if output.eager_error is not None:
                output.tf32_error = compare(truth, value, 0.0, 0.0, strict=False, locate=False).rms_error
    except Exception as error:
        # The class is then judged by the unit roundoff alone.
        if not (is_shortage(error) or isinstance(error, (CannotTell, ValueError))):
            raise


def _trivial_answers(
    problem: Problem,
    device: torch.device,
    settings: Settings,
    model: Reference,
    x: list[Any],
    expected: list[torch.Tensor],
    seeds: dict[str, int],
    study: Study,
) -> list[list[tuple[str, torch.Tensor]]]:
    """For each output the answers that need no computing, as (name, tensor) of the output's shape."""
    answers: list[list[tuple[str, torch.Tensor]]] = [_constants(tensor) for tensor in expected]
    inputs = [value for value in x if isinstance(value, torch.Tensor)]
    for index, tensor in enumerate(expected):
        for number, value in enumerate(inputs):
            if value.shape == tensor.shape and value.dtype == tensor.dtype:
                answers[index].append((f"input {number} passed through", value))
    if study.draws_random:
        return answers
    other = references.placed(references.drawn(problem, seeds["y"], settings.small, device=device), device)
    if seeds["x"] in study.draws:
        study.draws[seeds["y"]] = other
    _add(answers, "the answer to other inputs", expected, _quietly(model, other, seeds))
    if model.state():
        model.redraw(seeds["weights"] ^ 0x2545F491, perturb=True)
        moved = _quietly(model, x, seeds)
        # Moving zeros and ones must not leave the domain of the model (a variance that becomes negative, say).
        study.perturb = moved is not None and all(
            int(one.isfinite().sum()) >= int(two.isfinite().sum())
            for one, two in zip(moved, expected, strict=True)
            if one.shape == two.shape
        )
        if not study.perturb:
            model.redraw(seeds["weights"] ^ 0x2545F491, perturb=False)
            moved = _quietly(model, x, seeds)
        _add(answers, _OTHER_WEIGHTS, expected, moved)
    return answers


def _quietly(model: Reference, x: list[Any], seeds: dict[str, int]) -> list[torch.Tensor] | None:
    try:
        return references.tensors(model.run(copied(x), {}, seed=seeds["call"]))
    except CannotTell as error:
        if is_shortage(error):
            raise  # not an answer that cannot be had: the study is repeated without what needs memory, and says so
        return None


def _add(
    answers: list[list[tuple[str, torch.Tensor]]],
    name: str,
    expected: list[torch.Tensor],
    found: list[torch.Tensor] | None,
) -> None:
    if found is None or len(found) != len(expected):
        return
    for index, (one, two) in enumerate(zip(expected, found, strict=True)):
        if one.shape == two.shape and one.dtype == two.dtype:
            answers[index].append((name, two))


def _constants(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Zeros, the mean, and the mean over all but one dimension (channels, features), without memory of their own."""
    if tensor.numel() < 2 or tensor.is_complex():
        return [("zeros", torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape))]
    if not tensor.is_floating_point():
        values = [("zeros", torch.zeros((), dtype=tensor.dtype, device=tensor.device))]
        values.append(("one constant", tensor.flatten()[:1].reshape(())))
        return [(name, value.expand(tensor.shape)) for name, value in values]
    made = [
        ("zeros", torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)),
        ("one constant", tensor.mean(dtype=torch.float64).to(tensor.dtype).expand(tensor.shape)),
    ]
    if tensor.ndim >= 2:
        for dim in sorted({1, tensor.ndim - 1}):
            others = [number for number in range(tensor.ndim) if number != dim]
            name = "a constant per channel" if dim == 1 and tensor.ndim > 2 else "a constant per column"
            if math.prod(tensor.shape[number] for number in others) > 1:
                made.append((name, tensor.mean(others, keepdim=True).expand(tensor.shape)))
    return made


def _settle(
    output: OutputStudy,
    expected: torch.Tensor,
    answers: list[tuple[str, torch.Tensor]],
    settings: Settings,
    study: Study,
    findings: Findings,
) -> None:
    """Decides the tolerance of one output from the trivial answers that would pass it."""
    passing: list[tuple[str, Comparison]] = []
    for name, answer in answers:
        found = compare(expected, answer, settings.atol, settings.rtol, locate=False)
        if found.passed and expected.numel():
            passing.append((name, found))
    if not passing:
        return
    output.trivial = [name for name, _ in passing]
    names = ", ".join(output.trivial)
    floor = _rounding_floor(output, expected)
    # A trivial answer that differs only by what rounding does cannot be told from a right one.
    apart = [found.rms_error for _, found in passing if found.rms_error > 2 * floor]
    if not apart:
        output.still_trivial = list(output.trivial)
        if _told_by_moved_weights(answers, output.trivial, settings):
            findings.note(
                "trivial",
                f"{output.path}: {names} would pass with the weights as constructed; the trials with moved "
                "weights tell it apart",
            )
            return
        findings.warn(
            "trivial",
            f"{output.path} tells little: {names} would pass even a tolerance as tight as rounding allows, "
            "so passing says nothing about this output; give the problem inputs or weights that move it",
        )
        return
    distance = min(apart)
    if output.tf32_error is not None and _HONEST_ERRORS * output.tf32_error < distance / 4:
        # TF32 inside a solution stays allowed wherever the trivial answer is far enough away.
        floor = max(floor, _HONEST_ERRORS * output.tf32_error)
    atol = max(min(_SHARE * settings.atol, _LARGEST_SHARE) * distance, floor)
    rtol = max(settings.rtol * min(1.0, distance / output.rms), _HONEST_ULPS * _eps(expected)) if output.rms else 0.0
    output.tolerance = Tolerance(
        min(atol, settings.atol), min(rtol, settings.rtol), f"tightened, because {passing[0][0]} would pass"
    )
    study.tolerances[output.path] = output.tolerance
    for name, answer in answers:
        if (
            name in output.trivial
            and compare(expected, answer, output.tolerance.atol, output.tolerance.rtol, locate=False).passed
        ):
            output.still_trivial.append(name)
    still = f"; even so, {', '.join(output.still_trivial)} would pass" if output.still_trivial else ""
    findings.warn(
        "trivial",
        f"at atol {settings.atol:g}, rtol {settings.rtol:g} a trivial answer would pass {output.path} "
        f"({names}; its rms is {output.rms:.3g}): "
        f"it is judged at atol {output.tolerance.atol:.3g}, rtol {output.tolerance.rtol:.3g} instead{still}",
    )


def _rounding_floor(output: OutputStudy, expected: torch.Tensor) -> float:
    """The absolute error that an honest answer in the output's own precision may have."""
    if not (expected.is_floating_point() or expected.is_complex()):
        return 0.0
    return max(_HONEST_ERRORS * (output.eager_error or 0.0), _HONEST_ULPS * _eps(expected) * output.rms)


def _eps(tensor: torch.Tensor) -> float:
    return float(torch.finfo(tensor.dtype).eps)


def _class_of(error: float, study: OutputStudy, scale: float, dtype: torch.dtype) -> str:
    # A half-precision output cannot be nearer to fp64 than its own rounding, which eager shows too.
    eager = max(study.eager_error or 0.0, _UNITS["fp32"] * scale / 4)
    if error <= _SAME_CLASS * eager and dtype not in (torch.float16, torch.bfloat16):
        return "fp32"
    tf32 = max(study.tf32_error or 0.0, _UNITS["TF32/fp16"] * scale / 2)
    if error <= _SAME_CLASS / 2 * tf32 and dtype is not torch.bfloat16:
        return "TF32/fp16"
    bf16 = max(_UNITS["bf16"] * scale, study.eager_error or 0.0)
    return "bf16" if error <= _SAME_CLASS / 2 * bf16 else "worse"
