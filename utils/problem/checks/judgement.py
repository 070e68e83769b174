"""meaningful and acts: can a wrong answer be told from the right one on these inputs, and what would help if not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from utils.problem.checks.acting import Part
from utils.problem.checks.behaviour import Run, call, cloned, watched_call
from utils.problem.checks.estimate import tensors_in
from utils.problem.checks.finding import PASS, SKIP, WARN, Finding
from utils.problem.checks.meaning import Cure, Probe, cures, probe, rms, trivial_answers
from utils.problem.checks.reduce import Size
from utils.problem.problem import Problem, settle_inputs

# A cure counts when no trivial answer fits nine elements in ten any more; below one half nothing better is looked for.
# (Zeros always fit the half of its elements that a relu switches off.)
_CURED = 0.9
_WELL = 0.5


@dataclass
class Verdict:
    """What one choice of inputs and weights gives: trivial answers, parts that never act, uniform softmax."""

    probes: list[Probe]
    idle: list[Part]
    flat: list[Part]
    dull: set[tuple[str, int | None]]
    uniform: Probe | None
    rms: float
    finite: bool
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def worst(self) -> float:
        return max((p.share for p in self.probes), default=0.0)

    @property
    def places(self) -> set[tuple[str, int | None]]:
        return {(part.name, part.line) for part in (*self.idle, *self.flat)}


# With so few numbers in the result, one draw may fit another by chance; more draws are asked then.
_FEW = 64
_MORE_DRAWS = 4


def findings(
    problem: Problem,
    size: Size | None,
    model: torch.nn.Module,
    inputs: list[Any],
    second: list[Any],
    ran: Run,
    until: float,
) -> Iterator[Finding]:
    """The two findings. `until` bounds the search for cures, in monotonic seconds."""
    small = size is not None and size.small
    draws = [second]
    if sum(t.numel() for t in ran.outputs or []) <= _FEW and ran.seconds < 1:
        draw = size.draw if size is not None else problem.inputs
        draws += [settle_inputs(draw())[0] for _ in range(_MORE_DRAWS)]
    if ran.seconds * 6 > until - time.monotonic():
        said = f"not done: one forward takes {ran.seconds:.0f} s {ran.said}"
        yield Finding("meaningful", SKIP, said, None, "add get_small_inputs() for a size that runs on a CPU")
        yield Finding("acts", SKIP, said)
        return
    verdict = _verdict(problem, small, model, inputs, draws)
    degenerate = [p for p in verdict.probes if p.passes]
    partly = [p for p in verdict.probes if p.partly and not p.passes]
    uniform = (
        verdict.uniform is not None
        and verdict.uniform.partly
        and not any(p.passes for p in verdict.probes if p.name in {"zeros", "one constant"})
    )
    cure = None
    tried: list[tuple[Cure, Verdict]] = []
    if degenerate or verdict.places or uniform:
        tried = _try_cures(problem, small, inputs, draws, verdict.places, ran, until)
        cure = _best(tried)
    yield _meaningful(verdict, degenerate, partly, cure, ran)
    yield _acts(verdict, uniform, tried, ran)


def _verdict(
    problem: Problem,
    small: bool,
    model: torch.nn.Module,
    inputs: list[Any],
    draws: list[list[Any]],
    change: Cure | None = None,
) -> Verdict:
    first, seen, _ = watched_call(problem, model, cloned(inputs))
    other, seen_again, _ = watched_call(problem, model, cloned(draws[0]))
    redrawn = _other_weights(problem, small, model, inputs, change)
    probes = trivial_answers(first, other, redrawn, inputs, _differ(inputs, draws[0]))
    for draw in draws[1:]:
        again = trivial_answers(first, call(model, draw), None, inputs, _differ(inputs, draw))
        probes = [_lower(p, next((q for q in again if q.name == p.name), p)) for p in probes]
    uniform = None
    if seen.softmax:
        flattened, _, _ = watched_call(problem, model, cloned(inputs), uniform=True)
        uniform = probe("uniform attention", first, flattened)
    idle, flat = [], []
    dull = {(part.name, part.line) for part in seen.parts.values() if not part.lively}
    for key, part in seen.parts.items():
        twin = seen_again.parts.get(key)
        if part.idle and (twin is None or twin.idle):
            idle.append(part)
        elif part.flat and (twin is None or twin.flat):
            flat.append(part)
    finite = all(bool(t.isfinite().all()) for t in [*first, *other] if t.is_floating_point())
    return Verdict(probes, idle, flat, dull, uniform, rms(first), finite)


def _differ(first: list[Any], second: list[Any]) -> bool:
    return any(not torch.equal(a, b) for a, b in zip(tensors_in(first), tensors_in(second), strict=True))


def _lower(first: Probe, second: Probe) -> Probe:
    return Probe(first.name, min(first.share, second.share), min(first.strict, second.strict))


def _other_weights(
    problem: Problem, small: bool, model: torch.nn.Module, inputs: list[Any], change: Cure | None
) -> list[torch.Tensor] | None:
    """The answer with weights drawn again; constructors that always give the same ones get theirs disturbed."""
    if not any(True for _ in model.parameters()):
        return None
    other = problem.model(small).eval()
    if change is not None and change.weights is not None:
        change.weights(other)
    pairs = [
        (a, b)
        for a, b in zip(model.parameters(), other.parameters(), strict=False)
        if a.is_floating_point() and a.shape == b.shape
    ]
    if all(torch.equal(a, b) for a, b in pairs):
        for _, parameter in pairs:
            scale = parameter.data.double().square().mean().sqrt().item() or 1.0
            parameter.data.add_(torch.randn(parameter.shape).to(parameter.dtype) * 0.5 * scale)
    return call(other, inputs)


def _try_cures(
    problem: Problem,
    small: bool,
    inputs: list[Any],
    draws: list[list[Any]],
    wanted: set[tuple[str, int | None]],
    ran: Run,
    until: float,
) -> list[tuple[Cure, Verdict]]:
    """Each cure's verdict, while time lasts; those that give NaN, Inf or an error are left out."""
    tried: list[tuple[Cure, Verdict]] = []
    has_weights = None
    for cure in cures():
        if time.monotonic() + 5 * ran.seconds > until:
            break
        try:
            model = problem.model(small).eval()
            if has_weights is None:
                has_weights = any(p.dim() >= 2 for p in model.parameters())
            if cure.weights is not None:
                if not has_weights:
                    continue
                cure.weights(model)
            verdict = _verdict(problem, small, model, cure.inputs(inputs), [cure.inputs(draw) for draw in draws], cure)
        except Exception:
            continue
        if not verdict.finite:
            continue
        tried.append((cure, verdict))
        if verdict.worst < _WELL and not verdict.dull & wanted and not (verdict.uniform and verdict.uniform.partly):
            break
    return tried


def _best(tried: list[tuple[Cure, Verdict]]) -> tuple[Cure, Verdict] | None:
    """The first cure that works well, else the one that helps most."""
    for cure, verdict in tried:
        if verdict.worst < _WELL:
            return cure, verdict
    return min(tried, key=lambda pair: pair[1].worst, default=None)


def _meaningful(
    verdict: Verdict, degenerate: list[Probe], partly: list[Probe], cure: tuple[Cure, Verdict] | None, ran: Run
) -> Finding:
    facts: dict[str, Any] = {
        "rms": verdict.rms,
        "probes": {p.name: {"share_at_1e-2": p.share, "share_at_1e-4": p.strict} for p in verdict.probes},
        "size": ran.said,
    }
    if not degenerate:
        said = f"no trivial answer passes at atol = rtol = 1e-2 (best fit {verdict.worst:.0%} of elements)"
        if partly:
            said = f"no trivial answer passes, but {_listed(partly)} at atol = rtol = 1e-2"
        return Finding("meaningful", PASS, said, None, None, facts)
    strong = [p for p in degenerate if p.strict >= 0.995]
    how = "; also at 1e-4: " + ", ".join(p.name for p in strong) if strong else "; not at 1e-4"
    small = f"; the output's rms is {verdict.rms:.2g}" if any(p.name == "zeros" for p in degenerate) else ""
    said = f"{_listed(degenerate)} at atol = rtol = 1e-2{how}{small}"
    return Finding(
        "meaningful",
        WARN,
        said,
        None,
        _mend(verdict, degenerate, cure),
        {**facts, "cure": cure[0].said if cure else None},
    )


def _mend(verdict: Verdict, degenerate: list[Probe], cure: tuple[Cure, Verdict] | None) -> str:
    if cure is not None and cure[1].worst < _CURED:
        return f"{cure[0].said}: then no trivial answer fits more than {cure[1].worst:.0%} of the elements"
    if any(p.name == "zeros" for p in degenerate) and verdict.rms > 0:
        helped = (
            f"; best of the inputs tried: {cure[0].said} ({cure[1].worst:.0%})" if cure and cure[1].worst < 0.9 else ""
        )
        scale = f"atol = 1e-2 x rms = {1e-2 * verdict.rms:.1g}"
        return f"compare relative to the output's scale ({scale}), or scale the output up{helped}"
    if any(p.name == "the input itself" for p in degenerate):
        return (
            "the model hands its input through: give it weights, statistics or inputs under which it changes something"
        )
    if cure is not None and cure[1].worst < verdict.worst - 0.05:
        return f"none of the inputs tried cures it; the best was: {cure[0].said} ({cure[1].worst:.0%} still fit)"
    return "no input or initialisation tried cures it: the model itself loses the input (by a mean or softmax, say)"


def _acts(verdict: Verdict, uniform: bool, tried: list[tuple[Cure, Verdict]], ran: Run) -> Finding:
    idle = sorted(verdict.idle, key=lambda part: part.order)
    flat = sorted(verdict.flat, key=lambda part: part.order)
    facts = {
        "idle": [{"part": p.name, "line": p.line} for p in idle],
        "flattened": [{"part": p.name, "line": p.line} for p in flat],
        "uniform_softmax": uniform,
    }
    if not idle and not flat and not uniform:
        return Finding("acts", PASS, "every clamp, relu and softmax seen acts on these inputs", None, None, facts)
    parts = [f"{p.name}{_at(p)} leaves every value as it is" for p in idle]
    parts += [f"{p.name}{_at(p)} makes every value (or all but a few in a thousand) the same" for p in flat]
    if uniform:
        share = verdict.uniform.share if verdict.uniform else 0.0
        parts.append(f"softmax prefers nothing: plain averages pass for {share:.0%} of the elements")
    line = next((p.line for p in [*flat, *idle] if p.line), None)
    mend = "structural: no input or initialisation tried makes it act"
    for cure, after in tried:
        still = {(p.name, p.line) for p in (*idle, *flat)} & after.dull
        even = uniform and after.uniform is not None and after.uniform.share >= _WELL
        if not still and not even:
            mend = f"{cure.said}: then it acts"
            break
    else:
        if not tried:
            mend = "use inputs of both signs and larger scale, 4 * torch.randn(...) say (not tried: no time left)"
    return Finding("acts", WARN, "; ".join(parts), line, mend, facts)


def _at(part: Part) -> str:
    return f" (line {part.line})" if part.line else ""


def _listed(probes: list[Probe]) -> str:
    named = [f"{p.name} ({p.share:.0%})" for p in sorted(probes, key=lambda p: -p.share)]
    return f"{', '.join(named)} would pass"
