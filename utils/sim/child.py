"""One run of a workspace's ModelNew in a process of its own, for utils/sanitize.py; what it found goes to a JSON file.

    python -m utils.sim.child --workspace DIR --module FILE --mode MODE --seeds N --device cpu|cuda --out FILE [--names]

Modes asan and race run once, in the default order. Mode plain runs once per schedule (default, reverse, N random ones)
and compares the results. On a device it only runs: compute-sanitizer, around it, does the looking; with --names, and no
compute-sanitizer around it, it tells which kernels ran.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Sums in another order differ a little; a race makes another number.
SCHEDULE_RTOL = 1e-3


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--module", type=Path)
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    result: dict[str, Any] = {"findings": [], "launches": [], "error": "", "runs": 0}
    try:
        _run(options, result)
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
    options.out.write_text(json.dumps(result))
    return 0


def _run(options: argparse.Namespace, result: dict[str, Any]) -> None:
    import torch

    from utils.problem.loader import load_model_new
    from utils.problem.problem import load_problem
    from utils.problem.solution import find_solution
    from utils.problem.workspace import Workspace
    from utils.sim import reports

    workspace = Workspace(options.workspace)
    # The module comes first: in the checking modes it brings the allocator that knows every tensor's bounds.
    build = load_model_new(find_solution(workspace), extension=options.module)
    problem = load_problem(workspace.model)
    small = not options.full
    torch.manual_seed(0)
    arguments = problem.init_inputs(small)
    reference = problem.Model(*arguments)
    torch.manual_seed(0)
    model = build(*arguments)
    model.load_state_dict(reference.state_dict())
    model.eval()
    torch.manual_seed(1)
    inputs = problem.inputs(small)
    if options.device != "cpu":
        model = model.to(options.device)
        inputs = [each.to(options.device) if isinstance(each, torch.Tensor) else each for each in inputs]

    def run() -> list[torch.Tensor]:
        with torch.no_grad():
            # Copies, each in an allocation of its own.
            copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in inputs]
            return [each.detach().clone() for each in _tensors(model(*copies))]

    if options.device != "cpu":
        if options.names:
            from utils.timing import kernels

            rows = kernels.table(kernels.record(run, torch.device(options.device), warm=0))
            result["launches"] = list(dict.fromkeys(row.name for row in rows if row.family not in ("copy", "fill")))
        else:
            run()
            torch.cuda.synchronize()
        result["runs"] = 1
        return
    schedules = [("default", 0)]
    if options.mode == "plain":
        schedules += [("reverse", 0)] + [("random", seed) for seed in range(1, options.seeds + 1)]
    module = options.module
    first: list[torch.Tensor] | None = None
    for order, seed in schedules:
        reports.set_schedule(module, order, seed)
        error = ""
        try:
            outputs = run()
        except RuntimeError as raised:
            if reports.fault_kind(raised) is None:
                raise
            error, outputs = str(raised), None
        raw = reports.fetch(module)
        result["runs"] += 1
        result["launches"] = list(dict.fromkeys([*result["launches"], *raw["launches"]]))
        shown = (
            options.mode if options.mode != "plain" else f"schedule {order}" + (f" {seed}" if order == "random" else "")
        )
        result["findings"] += [each.record() for each in reports.findings(raw, shown)]
        if error or outputs is None:
            continue
        if first is None:
            first = outputs
        elif text := _difference(first, outputs):
            result["findings"].append(
                reports.Finding(
                    tool=f"simulator/{shown}",
                    kind="schedule",
                    message=f"{text} (order {order}{f' {seed}' if order == 'random' else ''} against the default one)",
                    kernel=", ".join(dict.fromkeys(raw["launches"])),
                ).record()
            )


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for each in value for tensor in _tensors(each)] if isinstance(value, (list, tuple)) else []


def _difference(first: list[Any], second: list[Any]) -> str:
    """How two runs differ beyond the order of sums; "" when they do not."""
    import torch

    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        if not a.is_floating_point():
            if not torch.equal(a, b):
                return f"output {index} differs in {int((a != b).sum())} of {a.numel()} elements"
            continue
        x, y = a.double(), b.double()
        scale = float(x[torch.isfinite(x)].abs().max()) if bool(torch.isfinite(x).any()) else 0.0
        same = torch.isclose(x, y, rtol=SCHEDULE_RTOL, atol=SCHEDULE_RTOL * scale, equal_nan=True)
        if not bool(same.all()):
            return f"output {index} differs in {int((~same).sum())} of {a.numel()} elements"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
