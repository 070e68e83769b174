"""What running a problem file shows: it is imported, drawn from, constructed and called, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from utils.present.outcome import CannotTell
from utils.problem.checks import behaviour, judgement
from utils.problem.checks.estimate import Estimate, estimate, followed, input_bytes, tensors_in
from utils.problem.checks.finding import FAIL, PASS, SKIP, WARN, Finding
from utils.problem.checks.observe import Deeds, watched
from utils.problem.checks.reduce import Size, choose_size, same_kind
from utils.problem.checks.source import Source, implicit_float_line
from utils.problem.problem import Problem, failing_line, failure, load_problem, settle_init_inputs, settle_inputs

# A single forward at full size that is still tried when the problem cannot be made smaller.
_MOST_FLOPS = 4e11


def running_findings(
    source: Source, device: str, memory: int, seconds: float, stage: Callable[[str], None]
) -> Iterator[Finding]:
    """Findings of every dynamic check, until one makes the next impossible. `stage` is told what is tried next."""
    path = source.path
    until = time.monotonic() + seconds
    stage("importing the file")
    with watched(path) as imported:
        problem, failed = _loaded(source)
    if problem is None:
        if failed is not None:
            yield failed
        return
    yield Finding("model-class", PASS, "class Model extends torch.nn.Module")
    if problem.Model.forward is torch.nn.Module.forward:
        cls = source.model()
        line = cls.lineno if cls else None
        yield Finding("model-class", FAIL, "Model has no forward", line, "define forward(self, ...)")
        return

    stage("calling get_inputs()")
    with watched(path) as drawing:
        full = estimate(problem, problem.inputs, stage=stage)
        needed = full.inputs if full else input_bytes(problem.inputs)
    yield _memory(full, needed, memory)
    size = choose_size(problem, full)
    draw = _drawable(problem, size, full, needed, memory)
    if draw is None:
        yield from _side_effects(source, imported, drawing)
        yield Finding(
            "runs",
            SKIP,
            "not tried: the inputs alone do not fit",
            None,
            "add get_small_inputs() for a size that runs on a CPU",
        )
        return

    stage("calling get_inputs()")
    with watched(path) as drawn:
        inputs, second = None, None
        try:
            value = draw()
            inputs, note = settle_inputs(value)
            if draw == problem.inputs:
                value = problem.get_inputs()
                second, note = settle_inputs(value)
            else:
                second = draw()
                # The shape of what the function itself returns, at no cost: fake tensors.
                note = _form(problem)
        except Exception as error:
            yield _inputs_failed(error, source)
    yield from _side_effects(source, imported, _joined(drawing, drawn))
    if inputs is None or second is None:
        return
    yield _returned("get-inputs", note, source, "get_inputs")
    yield from _placed(inputs, source)
    if any(t.device.type != "cpu" for t in tensors_in(inputs)):
        return
    yield from _shapes(problem, inputs, second)
    yield _dtypes(inputs, source, imported)

    try:
        init_value, init_note = settle_init_inputs(problem.get_init_inputs())
    except Exception as error:
        yield Finding(
            "get-init-inputs",
            FAIL,
            failure(error, path),
            failing_line(error, path),
            "return the constructor's arguments as a list",
        )
        return
    yield _returned("get-init-inputs", init_note, source, "get_init_inputs")

    stage("constructing Model")
    started = time.monotonic()
    try:
        with watched(path) as constructing:
            model = problem.Model(
                *(problem.init_inputs(True) if size is not None and size.small else init_value)
            ).eval()
    except Exception as error:
        if isinstance(error, TypeError) and not hasattr(problem.module, "get_init_inputs"):
            return  # that they are missing was said
        yield Finding(
            "constructs",
            FAIL,
            f"Model(*get_init_inputs()) fails: {failure(error, path)}",
            failing_line(error, path),
            "make get_init_inputs() return what the constructor takes",
        )
        return
    yield _constructed(constructing, time.monotonic() - started)

    if size is None and full is not None and (full.flops > _MOST_FLOPS or full.peak > memory):
        yield Finding(
            "runs",
            SKIP,
            f"not tried: forward takes {full.flops:.3g} operations, {_size(full.peak)}; its first axis cannot be cut",
            None,
            "add get_small_inputs() for a size that runs on a CPU",
        )
        return
    said = size.said if size is not None else "at full size"
    stage("running forward")
    ran = behaviour.first_run(problem, model, inputs, said)
    yield ran.finding
    if ran.outputs is None:
        return
    yield from behaviour.findings(problem, model, inputs, second, ran)
    stage("holding trivial answers against it")
    yield from judgement.findings(problem, size, model, inputs, second, ran, until)
    if device == "cuda":
        stage("running forward on the GPU")
        yield behaviour.gpu_run(problem, full)
    else:
        yield Finding("runs-gpu", SKIP, "not tried: no GPU was asked for or is there")


def _loaded(source: Source) -> tuple[Problem | None, Finding | None]:
    path = source.path
    try:
        return load_problem(path), None
    except CannotTell as error:
        said = str(error)
        line = failing_line(error, path)
        if said.startswith(f"{path.name} does not run") or "ends the interpreter" in said:
            return None, Finding("python", FAIL, said, line, "make the file run: python " + path.name)
        check = next(
            (
                name
                for word, name in (
                    ("get_inputs", "get-inputs"),
                    ("get_init", "get-init-inputs"),
                    ("get_small", "get-inputs"),
                )
                if word in said
            ),
            "model-class",
        )
        model = source.model()
        return None, Finding(
            check, FAIL, said, line or (model.lineno if model and check == "model-class" else None), None
        )


def _memory(full: Estimate | None, needed: int | None, memory: int) -> Finding:
    if full is None:
        if needed is not None and needed > memory:
            return Finding(
                "memory",
                WARN,
                f"the inputs take {_size(needed)}, this machine gives {_size(memory)}: not tried",
                None,
                "add get_small_inputs(), or check it on a larger machine",
                {"inputs": needed},
            )
        return Finding(
            "memory",
            PASS,
            "shapes cannot be followed without running the model, so nothing was estimated",
            None,
            None,
            {"inputs": needed},
        )
    facts = {"inputs": full.inputs, "weights": full.weights, "peak": full.peak, "flops": full.flops}
    said = (
        f"{_size(full.inputs)} of inputs, {_size(full.weights)} of weights, {_size(full.peak)} at the peak of forward"
    )
    if full.peak > memory:
        return Finding(
            "memory",
            WARN,
            f"{said}; this machine gives {_size(memory)}, so the full size is not tried",
            None,
            "add get_small_inputs(), or check it on a larger machine",
            facts,
        )
    return Finding("memory", PASS, said, None, None, facts)


def _drawable(
    problem: Problem, size: Size | None, full: Estimate | None, needed: int | None, memory: int
) -> Callable[[], list[Any]] | None:
    """How inputs may be drawn here: as the probes want them, or whole if they fit twice; None when neither will do."""
    if size is not None:
        return problem.inputs if size.draw == problem.inputs else size.draw
    if needed is None or (2 * needed <= memory and (full is None or full.weights <= memory)):
        return problem.inputs
    return None


def _form(problem: Problem) -> str | None:
    with followed():
        return settle_inputs(problem.get_inputs())[1]


def _inputs_failed(error: Exception, source: Source) -> Finding:
    line = failing_line(error, source.path)
    function = source.function("get_inputs")
    said = failure(error, source.path)
    if isinstance(error, CannotTell) and "must return a list" in said:
        return Finding(
            "get-inputs",
            FAIL,
            said,
            _return_line(function) or line,
            "return [x, y, ...] in the order of forward's parameters",
        )
    if "CUDA" in said or "NVIDIA driver" in said:
        return Finding(
            "cpu-tensors",
            FAIL,
            f"get_inputs() needs a GPU: {said}",
            line,
            "make CPU tensors; the workbench moves inputs (--fix does this)",
        )
    return Finding(
        "get-inputs", FAIL, said if isinstance(error, CannotTell) else f"get_inputs() failed: {said}", line, None
    )


def _returned(check: str, note: str | None, source: Source, name: str) -> Finding:
    function = source.function(name)
    if note is None:
        return Finding(check, PASS, f"{name}() returns a list")
    said, _, mend = note.partition("; ")
    used = "[]" if "None" in said else mend.split(": ")[-1]
    return Finding(
        check,
        WARN,
        f"{said}; it is used as {used}",
        _return_line(function),
        mend + (" (--fix does this)" if function else ""),
    )


def _return_line(function: Any) -> int | None:
    import ast

    if function is None:
        return None
    lines = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Return)]
    return lines[-1] if lines else function.lineno


def _placed(inputs: list[Any], source: Source) -> Iterator[Finding]:
    elsewhere = [(i, t.device) for i, t in enumerate(tensors_in(inputs)) if t.device.type != "cpu"]
    if elsewhere:
        index, place = elsewhere[0]
        yield Finding(
            "cpu-tensors",
            FAIL,
            f"tensor {index} of get_inputs() is on {place}",
            _return_line(source.function("get_inputs")),
            "leave it on the CPU; the workbench moves inputs (--fix does this)",
        )
    else:
        yield Finding("cpu-tensors", PASS, "all input tensors are on the CPU")


def _shapes(problem: Problem, first: list[Any], second: list[Any]) -> Iterator[Finding]:
    kinds = (same_kind(first), same_kind(second))
    if kinds[0] != kinds[1] or len(first) != len(second):
        different = next(((a, b) for a, b in zip(*kinds, strict=False) if a != b), (kinds[0], kinds[1]))
        yield Finding(
            "fixed-shapes",
            FAIL,
            f"two calls of get_inputs() differ: {_kind(different[0])} and {_kind(different[1])}",
            None,
            "use a constant for every dimension",
        )
        return
    yield Finding(
        "fixed-shapes",
        PASS,
        "two calls give the same shapes, strides and dtypes",
        None,
        None,
        {"tensors": [_kind(kind) for kind in kinds[0]]},
    )
    tensors = tensors_in(first)
    if tensors and all(torch.equal(a, b) for a, b in zip(tensors, tensors_in(second), strict=True)):
        yield Finding(
            "fresh-values",
            WARN,
            "every call of get_inputs() gives the same values, so several trials are one",
            None,
            "draw fresh values at each call, without a seed",
        )
    else:
        yield Finding("fresh-values", PASS, "two calls give different values")


def _dtypes(inputs: list[Any], source: Source, imported: Deeds) -> Finding:
    dtypes = [str(t.dtype).removeprefix("torch.") for t in tensors_in(inputs)]
    facts = {"dtypes": dtypes}
    line = implicit_float_line(source)
    listed = ", ".join(dict.fromkeys(dtypes)) or "no tensors"
    changed = any("default dtype" in said for said, _ in imported.flags)
    if "float64" in dtypes:
        return Finding(
            "dtypes",
            WARN,
            f"an input is float64 ({listed}); few kernels are written for it",
            line,
            "say dtype=torch.float32, or leave it if double precision is meant",
            facts,
        )
    if line is not None and changed:
        return Finding(
            "dtypes",
            WARN,
            f"dtypes come from a changed default ({listed})",
            line,
            "say dtype=... at each tensor",
            facts,
        )
    implicit = "; float32 is torch's default where none is said" if line is not None and "float32" in dtypes else ""
    return Finding("dtypes", PASS, listed + implicit, None, None, facts)


def _side_effects(source: Source, imported: Deeds, drawing: Deeds) -> Iterator[Finding]:
    worst = None
    for when, deeds, strict in (("importing the file", imported, False), ("get_inputs()", drawing, True)):
        for said, line in deeds.all():
            # Seeds and flags at import are undone by the workbench; in get_inputs they would spoil every trial.
            status = (
                FAIL
                if strict or "writes" in said or "process" in said or "network" in said or "calls os" in said
                else WARN
            )
            finding = Finding(
                "side-effects",
                status,
                f"{when}: {said}",
                line,
                "remove it: the file only defines Model and makes tensors",
            )
            if worst is None or (status == FAIL and worst.status != FAIL):
                worst = finding
    yield worst or Finding("side-effects", PASS, "importing the file and get_inputs() change nothing outside it")


def _constructed(deeds: Deeds, took: float) -> Finding:
    if deeds.seeds:
        said, line = deeds.seeds[0]
        return Finding(
            "constructs",
            WARN,
            f"the constructor fixes its weights: {said}",
            line,
            "remove the seed: weights are redrawn between trials",
        )
    if deeds.files or deeds.gpu:
        said, line = (deeds.files or deeds.gpu)[0]
        return Finding("constructs", WARN, f"the constructor does more than construct: {said}", line, "remove it")
    return Finding("constructs", PASS, f"Model(*get_init_inputs()) works ({took:.1f} s)")


def _joined(first: Deeds, second: Deeds) -> Deeds:
    both = Deeds(first.path)
    for name in ("files", "seeds", "flags", "gpu"):
        entries = [*getattr(first, name), *getattr(second, name)]
        setattr(both, name, list(dict.fromkeys(entries)))
    return both


def _kind(kind: Any) -> str:
    if isinstance(kind, tuple) and len(kind) == 3:
        shape, _, dtype = kind
        return f"[{', '.join(map(str, shape))}] {str(dtype).removeprefix('torch.')}"
    return f"{len(kind)} tensors"


def _size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"
