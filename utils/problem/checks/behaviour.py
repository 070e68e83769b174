"""How forward behaves: it runs, it repeats itself, it leaves its inputs alone, every input and weight counts."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from utils.problem.checks.acting import Seen, Watch
from utils.problem.checks.estimate import Estimate, tensors_in
from utils.problem.checks.finding import FAIL, PASS, SKIP, WARN, Finding
from utils.problem.checks.meaning import ATOL, share_within
from utils.problem.problem import Problem, failing_line, failure


@dataclass
class Run:
    """The first run of forward: its finding and, when it worked, the tensors it returned and what was seen below it."""

    finding: Finding
    outputs: list[torch.Tensor] | None = None
    seen: Seen | None = None
    seconds: float = 0.0
    said: str = ""
    mutated: list[int] | None = None
    state_before: dict[str, Any] | None = None


def first_run(problem: Problem, model: torch.nn.Module, inputs: list[Any], said: str) -> Run:
    """Runs forward once in eval mode under no_grad, watched."""
    given = cloned(inputs)
    before = _state(model)
    started = time.monotonic()
    try:
        outputs, seen, raw = watched_call(problem, model, given)
    except Exception as error:
        return Run(
            Finding(
                "runs",
                FAIL,
                f"Model(*get_init_inputs())(*get_inputs()) fails {said}: {failure(error, problem.path)}",
                failing_line(error, problem.path),
                "make forward take what get_inputs() returns",
            )
        )
    took = time.monotonic() - started
    odd = _odd_output(raw)
    if odd:
        return Run(
            Finding(
                "runs",
                FAIL,
                f"forward returns {odd}",
                None,
                "return tensors, or lists, tuples and dicts of tensors, numbers and None",
            )
        )
    mutated = [i for i, (a, b) in enumerate(zip(tensors_in(inputs), tensors_in(given), strict=True)) if not _same(a, b)]
    shapes = ", ".join(f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in outputs[:4])
    finding = Finding(
        "runs",
        PASS,
        f"it works on the CPU {said} ({took:.2f} s): {shapes}",
        None,
        None,
        {"seconds": took, "outputs": len(outputs)},
    )
    return Run(finding, outputs, seen, took, said, mutated, before)


def findings(
    problem: Problem, model: torch.nn.Module, inputs: list[Any], second: list[Any], ran: Run
) -> Iterator[Finding]:
    """finite, repeatable, inputs-unchanged, uses-inputs and uses-weights."""
    assert ran.outputs is not None and ran.seen is not None
    yield _finite(ran.outputs)
    if ran.mutated:
        names = parameters_of(problem)
        listed = ", ".join(names[i] if i < len(names) else str(i) for i in ran.mutated)
        yield Finding(
            "inputs-unchanged",
            WARN,
            f"forward changes its input {listed}",
            None,
            "work on a copy: an in-place operator on an input makes every later call start elsewhere",
        )
    else:
        yield Finding("inputs-unchanged", PASS, "forward leaves its inputs as they were")
    yield _repeatable(problem, model, inputs, ran)
    yield _uses_inputs(problem, model, inputs, second)
    yield _uses_weights(problem, model, inputs)


def watched_call(
    problem: Problem, model: torch.nn.Module, given: list[Any], uniform: bool = False
) -> tuple[list[torch.Tensor], Seen, Any]:
    """(output tensors, what was seen below, the raw result) of one call, with fused attention taken apart."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), Watch(problem.path, uniform) as watch:
            result = model(*given)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return tensors_in(result), watch.seen, result


def call(model: torch.nn.Module, inputs: list[Any]) -> list[torch.Tensor]:
    """The output tensors of one call on copies of `inputs`, in eval mode under no_grad."""
    with torch.no_grad():
        return tensors_in(model(*cloned(inputs)))


def cloned(values: list[Any]) -> list[Any]:
    """Copies of the tensors with their strides; everything else as it is."""
    return torch.utils._pytree.tree_map(
        lambda v: v.clone(memory_format=torch.preserve_format) if isinstance(v, torch.Tensor) else v, values
    )


def parameters_of(problem: Problem) -> list[str]:
    """The names of forward's positional parameters."""
    code = getattr(problem.Model.forward, "__code__", None)
    return list(code.co_varnames[1 : code.co_argcount]) if code is not None else []


def _finite(outputs: list[torch.Tensor]) -> Finding:
    for index, tensor in enumerate(outputs):
        if not tensor.is_floating_point():
            continue
        bad = ~tensor.isfinite()
        count = int(bad.sum())
        if count:
            where = [int(i) for i in bad.nonzero()[0]] if tensor.dim() else []
            value = float(tensor[tuple(where)])
            share = count / tensor.numel()
            return Finding(
                "finite",
                WARN,
                f"output {index} holds {count} NaN or Inf ({share:.2g} of it), the first at {where}: {value}",
                None,
                "choose inputs in the domain of the operation; NaN must then match NaN in place",
                {"count": count, "first": where},
            )
    return Finding("finite", PASS, "outputs are finite")


def _repeatable(problem: Problem, model: torch.nn.Module, inputs: list[Any], ran: Run) -> Finding:
    assert ran.outputs is not None and ran.seen is not None
    # Two plain calls: the watched one took fused attention apart, which rounds differently.
    after_one = _state(model)
    once, again = call(model, inputs), call(model, inputs)
    kept = _changed(ran.state_before or {}, after_one) + _changed(after_one, _state(model))
    share, same = 0.0, False
    if len(once) == len(again):
        share = min((share_within(a, b, ATOL) for a, b in zip(once, again, strict=True)), default=1.0)
        same = all(_same(a, b) for a, b in zip(once, again, strict=True))
    train = _train_mode(problem, model, inputs)
    facts = {"state": sorted(set(kept)), "random": [name for name, _ in ran.seen.random], "train_mode": train}
    line = None
    if ran.seen.random:
        name, line = ran.seen.random[0]
        said = f"forward draws random numbers ({name})"
        mend = "draw them in get_inputs() and pass them in"
    elif kept:
        said = f"forward keeps state from call to call: {', '.join(sorted(set(kept)))}"
        mend = "take the state as an input and return it"
    elif not same:
        said, mend = "the same call gives two answers", "find what it depends on besides its inputs and weights"
    else:
        extra = f"; in train mode {train}" if train else ""
        return Finding("repeatable", PASS, f"the same call gives the same answer{extra}", None, None, facts)
    if share < 1.0:
        return Finding(
            "repeatable", FAIL, f"{said}, and a second call differs by more than the tolerance", line, mend, facts
        )
    return Finding("repeatable", WARN, f"{said}; the answer moves by less than the tolerance", line, mend, facts)


def _train_mode(problem: Problem, model: torch.nn.Module, inputs: list[Any]) -> str | None:
    """What is different in train mode, which `--train` and other harnesses use; None when nothing was seen."""
    try:
        training = copy.deepcopy(model).train()
        before = _state(training)
        _, seen, _ = watched_call(problem, training, cloned(inputs))
    except Exception:
        return None
    parts = []
    if seen.random:
        parts.append(f"it draws random numbers ({seen.random[0][0]})")
    if changed := _changed(before, _state(training)):
        parts.append(f"it updates {', '.join(sorted(set(changed))[:3])}")
    return " and ".join(parts) or None


def _uses_inputs(problem: Problem, model: torch.nn.Module, inputs: list[Any], second: list[Any]) -> Finding:
    names = parameters_of(problem)
    usual = call(model, inputs)
    idle = []
    for index, value in enumerate(inputs):
        mine, other = tensors_in(value), tensors_in(second[index])
        if not mine or all(torch.equal(a, b) for a, b in zip(mine, other, strict=True)):
            continue
        changed = [*inputs[:index], second[index], *inputs[index + 1 :]]
        try:
            outputs = call(model, changed)
        except Exception:
            continue
        if all(_same(a, b) for a, b in zip(usual, outputs, strict=True)):
            idle.append(names[index] if index < len(names) else str(index))
    if idle:
        return Finding(
            "uses-inputs",
            WARN,
            f"the output does not depend on {', '.join(idle)}: another draw gives the same answer, bit for bit",
            None,
            "use the input in forward, or leave it out of get_inputs()",
            {"unused": idle},
        )
    return Finding("uses-inputs", PASS, "every input moves the output")


def _uses_weights(problem: Problem, model: torch.nn.Module, inputs: list[Any]) -> Finding:
    parameters = [(name, p) for name, p in model.named_parameters() if p.is_floating_point()]
    if not parameters:
        return Finding("uses-weights", PASS, "Model has no parameters")
    wanted = [p.requires_grad for _, p in parameters]
    try:
        for _, parameter in parameters:
            parameter.requires_grad_(True)
        outputs = [t for t in tensors_in(model(*cloned(inputs))) if t.is_floating_point() and t.requires_grad]
        if not outputs:
            return Finding("uses-weights", SKIP, "not tried: no gradient flows back from the outputs")
        total = torch.stack([(t.double() * torch.randn(t.shape, dtype=torch.float64)).sum() for t in outputs]).sum()
        gradients = torch.autograd.grad(total, [p for _, p in parameters], allow_unused=True)
    except Exception as error:
        return Finding("uses-weights", SKIP, f"not tried: {failure(error, problem.path)}")
    finally:
        for (_, parameter), before in zip(parameters, wanted, strict=True):
            parameter.requires_grad_(before)
    unused = [name for (name, _), g in zip(parameters, gradients, strict=True) if g is None]
    dead = [name for (name, _), g in zip(parameters, gradients, strict=True) if g is not None and not bool(g.any())]
    facts = {"unused": unused, "dead": dead}
    if unused:
        return Finding(
            "uses-weights",
            WARN,
            f"forward never uses {_some(unused)}",
            None,
            "keep it in ModelNew for the state_dict and ignore it there too, or remove it from the problem",
            facts,
        )
    if dead:
        return Finding(
            "uses-weights",
            WARN,
            f"{_some(dead)} has no effect on these inputs: its gradient is exactly zero",
            None,
            "something behind it swallows the signal; see acts and meaningful",
            facts,
        )
    return Finding("uses-weights", PASS, f"all {len(parameters)} parameters move the output", None, None, facts)


def gpu_run(problem: Problem, full: Estimate | None) -> Finding:
    """The model at full size on the GPU, if the estimate fits in what is free there."""
    free, _ = torch.cuda.mem_get_info()
    if full is not None and full.peak > 0.9 * free:
        return Finding(
            "runs-gpu",
            SKIP,
            f"not tried: forward needs {full.peak / 2**30:.3g} GiB, the GPU has {free / 2**30:.3g} GiB free",
        )
    try:
        model = problem.model().eval().cuda()
        moved = torch.utils._pytree.tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, problem.inputs())
        with torch.no_grad():
            outputs = tensors_in(model(*moved))
        torch.cuda.synchronize()
    except Exception as error:
        return Finding(
            "runs-gpu",
            FAIL,
            f"it fails on the GPU: {failure(error, problem.path)}",
            failing_line(error, problem.path),
            "make tensors inside forward on the device of its inputs (device=x.device)",
        )
    elsewhere = [i for i, t in enumerate(outputs) if t.device.type != "cuda"]
    if elsewhere:
        return Finding(
            "runs-gpu",
            WARN,
            f"output {elsewhere[0]} is left on {outputs[elsewhere[0]].device}",
            None,
            "make it on the device of the inputs",
        )
    return Finding("runs-gpu", PASS, f"it works on {torch.cuda.get_device_name()}")


def _odd_output(value: Any) -> str | None:
    """What in a result is neither a tensor nor a container of tensors, numbers and None."""
    if value is None or isinstance(value, (torch.Tensor, bool, int, float, complex, str)):
        return None
    if isinstance(value, (list, tuple)):
        return next((odd for item in value if (odd := _odd_output(item))), None)
    if isinstance(value, dict):
        return next((odd for item in value.values() if (odd := _odd_output(item))), None)
    return f"a {type(value).__name__}"


def _state(model: torch.nn.Module) -> dict[str, Any]:
    """Everything a module remembers besides its parameters: buffers and plain attributes, tensors copied."""
    found: dict[str, Any] = {}
    for prefix, module in model.named_modules():
        for name, value in module.__dict__.items():
            if (
                name in {"_parameters", "_modules", "training"}
                or name.endswith("_hooks")
                or name.startswith("_non_persistent")
            ):
                continue
            label = f"{prefix}.{name}" if prefix else name
            if name == "_buffers":
                found.update(
                    {f"{prefix}.{key}" if prefix else key: t.clone() for key, t in value.items() if t is not None}
                )
            elif isinstance(value, torch.Tensor):
                found[label] = value.clone()
            elif isinstance(value, (int, float, str, bool, type(None))):
                found[label] = value
            elif isinstance(value, (list, tuple, dict)) and len(value) < 64:
                found[label] = (len(value), [t.clone() for t in tensors_in(value)])
    return found


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        name
        for name in {*before, *after}
        if name not in before or name not in after or not _equal(before[name], after[name])
    ]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _same(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a[0] == b[0] and len(a[1]) == len(b[1]) and all(_same(x, y) for x, y in zip(a[1], b[1], strict=True))
    return type(a) is type(b) and bool(a == b)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit, NaN to NaN."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        and (not a.is_floating_point() or torch.equal(a.isnan(), b.isnan()))
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
