"""A verification for a person and for a program: the tables, and the JSON record's parts.

`results` of the record, beside what every record has (utils.present.record):

    trials[]      trial, seeds (construct, weights, x, y, call, second_call, third_call), weights (how they came about),
                  constructed, repeatable, buffers_that_differ, calls[]: call, inputs, device_ms, wall_ms, launch_error,
                  changed_inputs, passed, distribution, structure[], outputs[]: path, passed, count, failing,
                  unwritten, max_abs, max_rel, rms_error, rms_expected, relative_rms, cosine, atol, rtol, atol_needed,
                  rtol_needed, worst, NaN and Inf counts, where
    outputs[]     the study of the problem: path, rms, peak, trivial_answers_that_would_pass, still_pass, the tightened
                  atol and rtol (null where the command line's hold), eager_rms_error, tf32_rms_error (against fp64)
    precision     class (fp32, TF32/fp16, bf16, worse, exact, unknown) and the errors it rests on, or why it is unknown
    close_miss    the smallest atol and rtol under which every call would have passed, null where none would help
    findings[]    level (fail, warn, note), kind, sentence, trial, call, details
    probes[]      probe (scaled, strided, misaligned) and outcome
    operators[]   what torch dispatched: op, count, phase, python_stack
    flags, solution_output
    seconds       by stage, one after the other: start, torch (the judge's import), device, problem, study, import
                  (waiting for the runner), trials, probes, end
    seconds_within
                  what they were spent on: "runner: ..." is waiting for the answer to a request; "runner: sandbox",
                  "runner: hello" and "runner: import" pass beside the stages up to import. Parts may overlap
"""

from __future__ import annotations

import math
import os
import platform
import sys
from typing import Any

from utils.judge.comparing import rounded_up
from utils.judge.trials import CallRecord, TrialRecord
from utils.judge.verify import Request, Verification
from utils.native.compare import Comparison
from utils.present import console, record

# More reasons than this hide the first, which is the one to mend.
_MOST = 8


def word(done: Verification) -> str:
    return done.verdict + (" (simulated)" if done.simulated else "")


def show(done: Verification, verbose: bool) -> None:
    """Everything a person needs on stdout: what was judged, the trials, what was found, the verdict last."""
    facts = done.facts
    where = "the simulator" if done.simulated else facts.get("device_name") or done.place.device
    console.say(
        f"{done.solution.path} against {done.problem}, on {where}, torch {facts.get('torch', '?')}, seed {done.seed}",
        "note",
    )
    if done.trials is not None and done.trials.records:
        _trials(done)
    _findings(done, verbose)
    style = "pass" if done.passed else "fail"
    if done.passed:
        console.say(f"{word(done)}: ModelNew computes what Model computes{_margin(done)}", style)
    else:
        console.say(f"{word(done)}: {done.reasons[0] if done.reasons else 'no reason recorded'}", style)
        for reason in done.reasons[1:_MOST]:
            console.say(f"      {reason}", style)
        if len(done.reasons) > _MOST:
            console.say(f"      and {len(done.reasons) - _MOST} more reasons (--json lists all)", style)
    if done.simulated:
        console.say(
            "no GPU was involved: kernels ran on the CPU simulator, on small shapes where the problem gives them",
            "warn",
        )


def _trials(done: Verification) -> None:
    assert done.trials is not None
    rows = []
    for trial in done.trials.records:
        for call in trial.calls:
            rows.append(
                [
                    trial.number,
                    trial.weights if call.call == 1 else "",
                    f"{call.call}: {call.label}",
                    *_numbers(call),
                    _result(call),
                ]
            )
    columns = [
        "trial",
        "weights",
        "call",
        "max abs error",
        "max rel error",
        "error / tolerance",
        "outside",
        "ms",
        "result",
    ]
    console.table("", columns, rows, right=["max abs error", "max rel error", "error / tolerance", "outside", "ms"])
    notes = sorted({trial.repeatable for trial in done.trials.records if trial.repeatable})
    if notes:
        console.say(f"repeatable: {'; '.join(notes)}", "note")
    if done.precision:
        console.say(precision_sentence(done.precision), "note")


def _numbers(call: CallRecord) -> list[str]:
    ms = "" if call.device_ms is None else f"{call.device_ms:.3f}"
    worst = call.compared.worst() if call.compared is not None else None
    if worst is None:
        return ["", "", "", "", ms]
    return [
        f"{worst.max_abs:.3g}",
        f"{worst.max_rel:.3g}",
        f"{worst.worst_ratio:.3g}",
        f"{worst.failing:,}" if worst.failing else "0",
        ms,
    ]


def _result(call: CallRecord) -> tuple[str, str]:
    if call.compared is None:
        return ("no answer", "fail")
    if not call.passed:
        return ("wrong", "fail")
    if call.distribution:
        return (call.distribution, "pass")
    return ("changed its input", "fail") if call.changed else ("same", "pass")


def _findings(done: Verification, verbose: bool) -> None:
    for finding in done.findings.of("warn"):
        console.say(f"warning: {finding}", "warn")
    for finding in done.findings.of("note"):
        console.say(f"note: {finding}", "note")
    if done.output.strip() and (verbose or not done.passed):
        console.say("the solution's own output:", "note")
        for line in done.output.strip().splitlines()[-(200 if verbose else 20) :]:
            console.say(f"  | {line}", "note")
    for trace in done.traces:
        console.say("where the solution raised:", "note")
        for line in trace.rstrip().splitlines():
            console.say(f"  | {line}", "note")
    if verbose:
        console.say(f"sandbox: {', '.join(done.sandbox.get('layers', [])) or 'none'}", "note")
        for what, seconds in (("seconds", done.clock.laps), ("within them", done.clock.parts)):
            console.say(f"{what}: " + ", ".join(f"{name} {value:.2f}" for name, value in seconds.items()), "note")


def precision_sentence(precision: dict[str, Any]) -> str:
    """The precision class in words, with the figures it rests on."""
    if precision["class"] in ("unknown", "exact"):
        return f"precision class: {precision['class']} ({precision['why']})"
    eager = precision["eager_relative_rms_error"]
    return (
        f"precision class: {precision['class']}, by its error against fp64: relative rms error "
        f"{precision['relative_rms_error']:.3g} in "
        f"{precision['output']}, eager fp32 has {eager:.3g}"
    )


def _margin(done: Verification) -> str:
    worst = [
        call.compared.worst()
        for trial in (done.trials.records if done.trials else [])
        for call in trial.calls
        if call.compared is not None
    ]
    ratios = [item.worst_ratio for item in worst if item is not None]
    count = sum(len(trial.calls) for trial in (done.trials.records if done.trials else []))
    if not ratios:
        return f" in {count} calls"
    return f" in {count} calls; the largest error is {max(ratios):.3g} of the tolerance"


def settings(request: Request, done: Verification) -> dict[str, Any]:
    """The options in force."""
    return {
        "problem": done.problem,
        "solution": done.solution.path,
        "kind": done.solution.kind,
        "device": done.place.device,
        "atol": request.atol,
        "rtol": request.rtol,
        "trials": request.trials,
        "seed": done.seed,
        "train": request.train,
        "timeout_s": request.timeout,
        "memory_limit_bytes": request.memory_limit,
        "rules": request.rules,
        "sandbox": request.sandbox,
        "require_sandbox": request.require_sandbox,
        "small_inputs": done.place.small,
    }


def environment(done: Verification) -> dict[str, Any]:
    """Machine, versions, sandbox, digests."""
    return {
        "platform": platform.platform(),
        "python": sys.version.split()[0],
        "cpus": os.cpu_count(),
        "torch": done.facts.get("torch"),
        "device_name": done.facts.get("device_name"),
        "capability": done.facts.get("capability"),
        "sandbox": done.sandbox,
        "digests": done.digests,
        "module": done.facts.get("after import", {}).get("build", {}),
    }


def results(done: Verification) -> dict[str, Any]:
    """Every measured number: trials, calls, comparisons; the study of the problem; findings; operators; times."""
    trials = done.trials
    return {
        "findings": [finding.as_dict() for finding in done.findings.all],
        "trials": [_trial(trial) for trial in trials.records] if trials else [],
        "precision": done.precision,
        "outputs": [
            {
                "path": output.path,
                "rms": output.rms,
                "peak": output.peak,
                "trivial_answers_that_would_pass": output.trivial,
                "still_pass": output.still_trivial,
                "atol": (output.tolerance.atol if output.tolerance else None),
                "rtol": (output.tolerance.rtol if output.tolerance else None),
                "eager_rms_error": output.eager_error,
                "tf32_rms_error": output.tf32_error,
            }
            for output in (done.study.outputs if done.study else [])
        ],
        "probes": done.probes,
        "operators": list(trials.ops.values()) if trials else [],
        "flags": trials.flags if trials else {},
        "solution_output": done.output,
        "seconds": done.clock.laps,
        "seconds_within": done.clock.parts,
    }


def _trial(trial: TrialRecord) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "seeds": trial.seeds,
        "weights": trial.weights,
        "constructed": trial.constructed,
        "repeatable": trial.repeatable,
        "buffers_that_differ": trial.state_differs,
        "calls": [
            {
                "call": call.call,
                "inputs": call.label,
                "device_ms": call.device_ms,
                "wall_ms": call.wall_ms,
                "launch_error": call.launch_error,
                "changed_inputs": call.changed,
                "passed": call.passed if call.compared is not None else None,
                "distribution": call.distribution,
                "structure": call.compared.structure if call.compared is not None else [],
                "outputs": [
                    {
                        "path": leaf.path,
                        "passed": leaf.passed,
                        **(_comparison(leaf.comparison) if leaf.comparison is not None else {}),
                    }
                    for leaf in (call.compared.leaves if call.compared is not None else [])
                ],
            }
            for call in trial.calls
        ],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "count": found.count,
        "failing": found.failing,
        "unwritten": found.unwritten,
        "max_abs": found.max_abs,
        "max_rel": found.max_rel,
        "rms_error": found.rms_error,
        "rms_expected": found.rms_expected,
        "relative_rms": found.relative_rms,
        "cosine": found.cosine,
        "atol": found.atol,
        "rtol": found.rtol,
        "atol_needed": found.atol_needed,
        "rtol_needed": found.rtol_needed,
        "worst": {
            "index": found.worst_index,
            "expected": _plain(found.worst_expected),
            "actual": _plain(found.worst_actual),
            "error_over_tolerance": found.worst_ratio,
        },
        "nan_expected": found.nan_expected,
        "nan_actual": found.nan_actual,
        "inf_expected": found.inf_expected,
        "inf_actual": found.inf_actual,
        "nonfinite_mismatch": found.nonfinite_mismatch,
        "where": found.where() if found.failing else "",
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, complex) else value


def close_miss(done: Verification) -> dict[str, str] | None:
    """The smallest tolerances under which every call would have passed, or None where none would help."""
    found = [
        leaf.comparison
        for trial in (done.trials.records if done.trials else [])
        for call in trial.calls
        if call.compared is not None
        for leaf in call.compared.leaves
        if leaf.comparison is not None
    ]
    if not found or all(item.passed for item in found):
        return None
    atol, rtol = max(item.atol_needed for item in found), max(item.rtol_needed for item in found)
    if not math.isfinite(atol):
        return None
    return {"atol": rounded_up(atol), "rtol": rounded_up(rtol) if math.isfinite(rtol) else "none"}


def envelope(request: Request, done: Verification) -> dict[str, Any]:
    """The whole JSON record."""
    made = results(done)
    made["close_miss"] = close_miss(done)
    return record.envelope(
        "verification",
        word(done),
        0 if done.passed else 1,
        done.reasons,
        simulated=done.simulated,
        settings=settings(request, done),
        environment=environment(done),
        results=made,
    )
