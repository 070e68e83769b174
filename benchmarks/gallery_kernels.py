"""The gallery's workspaces on a GPU: is every config right, how fast is it, and how near the hardware's limit?

    python benchmarks/gallery_kernels.py [NAMES ...] [--json FILE] [--skip-build] [--no-compile] [--seconds 0.4]

Each workspace gets a process of its own. All of them build, import torch and warm torch.compile at the same time; then
they take turns on the GPU, so that no timing has company. A turn:

1. correctness: two draws of weights and inputs against the reference in fp64 (fp32 where fp64 does not fit),
   element-wise at atol = rtol = 1e-2, and as rms error over rms reference, beside the same figure for fp32 eager;
2. timing: CUDA events around single calls, L2 flushed before each, a spin kernel in front to hide the launch;
   medians of the solution, eager, torch.compile as it comes, and both with TF32 allowed;
3. every other `config` its bindings document: correctness, then time.

One failure never stops the rest. Exit 0: all correct; 1: some are not; 2: no GPU.
This is a quick look for the kernels' author. The judge and the clock of the workbench give verdicts; this does not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
TOLERANCE = 1e-2

# Multiply-adds x 2 of the matrix products that are needed, from the shapes in each model.py. None: bound by memory.
NECESSARY_FLOP: dict[str, float | None] = {
    "softmax_rows": None,
    "layer_norm": None,
    "group_norm": None,
    "cumsum_rows": None,
    "max_pool_2d": None,
    "cross_entropy": None,
    "matmul_square": 2 * 4096**3,
    "matmul_rect": 2 * 2048 * 8192 * 4096,
    "gemm_act_scale": 2 * 1024 * 8192 * 8192,
    "matmul_triangular": 4096**3 / 3,
    "attention_causal": 2 * 16 * 16 * 2048 * 2048 * 64,
    "transformer_block": 8 * 1024 * 768 * 2 * 768 * 12 + 2 * 8 * 1024 * 1024 * 768,
    "conv_bias_act_pool": 2 * 128 * 64 * 254 * 254 * 8 * 9,
}


# ---- a worker ----------------------------------------------------------------------------------------------------


class Clock:
    """Times single calls on the current device."""

    def __init__(self, seconds: float):
        import torch

        self.torch = torch
        self.seconds = seconds
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(max(4 * l2, 1 << 28), dtype=torch.uint8, device="cuda")

    def samples(self, call: Callable[[], Any]) -> list[float]:
        """Milliseconds of single calls: at least 20, more while they fit into `seconds`. Results are dropped."""
        torch = self.torch
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        count = max(20, min(100, int(self.seconds / max(time.perf_counter() - start, 1e-6))))
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for begin, end in pairs:
            self.flush.zero_()
            torch.cuda._sleep(400_000)  # cycles, some 0.2 ms: the call is enqueued before the device reaches it
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in pairs]

    def median(self, call: Callable[[], Any]) -> float:
        return statistics.median(self.samples(call))

    def copy_rate(self) -> float:
        """Bytes per second of a device copy of 2 GiB, read and write counted."""
        torch = self.torch
        source = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        milliseconds = self.median(lambda: target.copy_(source))
        return 2 * source.numel() / milliseconds * 1e3


def load_module(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tensors_in(value: Any) -> Iterator[Any]:
    if hasattr(value, "numel"):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


@contextmanager
def tf32_matmul(torch: Any, allowed: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def error_of(torch: Any, got: Any, expected: Any) -> dict[str, Any]:
    """How far `got` is from `expected` (any float type), without more than a slice of both in fp64 at a time."""
    got, expected = got.reshape(-1), expected.reshape(-1)
    step = 1 << 27
    worst, failing, zeros_failing, squares, reference = 0.0, 0, 0, 0.0, 0.0
    for start in range(0, expected.numel(), step):
        wanted = expected[start : start + step].double()
        difference = (got[start : start + step].double() - wanted).abs()
        # NaN in one of the two fails every comparison; NaN in both is not looked for, since no model here makes one.
        failing += int((~(difference <= TOLERANCE + TOLERANCE * wanted.abs())).sum())
        zeros_failing += int((wanted.abs() > TOLERANCE + TOLERANCE * wanted.abs()).sum())
        worst = max(worst, float(difference.max()))
        squares += float(difference.square().sum())
        reference += float(wanted.square().sum())
    return {
        "max_abs": worst,
        "failing": failing,
        "rms_relative": (squares / reference) ** 0.5 if reference > 0 else float("nan"),
        "zeros_would_pass": zeros_failing == 0,
    }


class Turn:
    """One workspace: model, solution and all that is measured of them, written to `result` as it becomes known."""

    def __init__(self, name: str, result: Path, seconds: float, compile_baseline: bool):
        import torch

        self.torch = torch
        self.name = name
        self.path = result
        self.seconds = seconds
        self.compile_baseline = compile_baseline
        self.record: dict[str, Any] = {"name": name, "problems": [], "configs": []}
        workspace = EXAMPLES / name
        sys.path.insert(0, str(workspace))
        self.problem = load_module("gallery_model", workspace / "model.py")
        self.compiled: dict[bool, Any] = {}

    def save(self) -> None:
        self.path.write_text(json.dumps(self.record, indent=2))

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Whatever goes wrong inside is noted, and the turn goes on."""
        try:
            yield
        except Exception as error:
            self.record["problems"].append(f"{what}: {type(error).__name__}: {error}"[:2000])
            traceback.print_exc()
        finally:
            self.save()

    def draw(self, seed: int) -> tuple[Any, list[Any]]:
        """A model with fresh weights and inputs for it, both drawn on the GPU."""
        torch = self.torch
        torch.manual_seed(seed)
        with torch.device("cuda"):
            model = self.problem.Model(*self.problem.get_init_inputs()).eval()
            inputs = self.problem.get_inputs()
        return model.cuda(), [value.cuda() if hasattr(value, "cuda") else value for value in inputs]

    def warm(self) -> None:
        """What needs the CPU more than the GPU: CUDA context, torch.compile."""
        torch = self.torch
        torch.set_grad_enabled(False)
        torch.zeros(1, device="cuda")
        if not self.compile_baseline:
            return
        with self.noting("torch.compile"):
            model, inputs = self.draw(0)
            self.model = model
            start = time.perf_counter()
            for allowed in (False, True):
                with tf32_matmul(torch, allowed):
                    compiled = torch.compile(model)
                    compiled(*inputs)
                self.compiled[allowed] = compiled
            torch.cuda.synchronize()
            self.record["compile_seconds"] = time.perf_counter() - start
            del inputs
            torch.cuda.empty_cache()

    def reference(self, model: Any, inputs: list[Any]) -> tuple[Any, str]:
        torch = self.torch
        try:
            with torch.device("cuda"):
                exact = self.problem.Model(*self.problem.get_init_inputs()).eval()
            exact.load_state_dict(model.state_dict())
            doubled = [value.double() if getattr(value, "is_floating_point", bool)() else value for value in inputs]
            return exact.cuda().double()(*doubled), "fp64"
        except Exception as error:  # out of memory, or an operator without fp64
            torch.cuda.empty_cache()
            print(f"{self.name}: fp64 reference not possible ({type(error).__name__}: {error})", flush=True)
            return model(*inputs), "fp32 eager"

    def check(self, solution: Any, seed: int, eager: bool) -> dict[str, Any]:
        torch = self.torch
        model, inputs = self.draw(seed)
        before = [value.clone() for value in tensors_in(inputs)] if sum_bytes(inputs) < 4e9 else []
        solution.load_state_dict(model.state_dict())
        got = solution(*inputs)
        torch.cuda.synchronize()
        expected, kind = self.reference(model, inputs)
        if got.shape != expected.shape or got.dtype != model(*inputs).dtype:
            raise AssertionError(f"result is {got.dtype} {tuple(got.shape)}, reference {tuple(expected.shape)}")
        found = error_of(torch, got, expected) | {"seed": seed, "reference": kind}
        found["inputs_changed"] = any(not torch.equal(a, b) for a, b in zip(before, tensors_in(inputs), strict=False))
        again = solution(*inputs)
        found["repeats_bitwise"] = bool(torch.equal(got, again))
        if eager:
            del got, again
            found["eager_rms_relative"] = error_of(torch, model(*inputs), expected)["rms_relative"]
        return found

    def run(self) -> None:
        torch = self.torch
        clock = Clock(self.seconds)
        with self.noting("limits"):
            self.record["device"] = torch.cuda.get_device_name(0)
            self.record["copy_rate"] = clock.copy_rate()
            torch.cuda.empty_cache()
        with self.noting("solution"):
            importlib.invalidate_caches()  # the module was built after this process had started
            import cuda_extension

            module = load_module("gallery_model_new", EXAMPLES / self.name / "model_new.py")
            with torch.device("cuda"):
                solution = module.ModelNew(*self.problem.get_init_inputs()).cuda().eval()
            checks = [self.check(solution, seed, eager=seed == 1) for seed in (1, 2)]
            torch.cuda.empty_cache()
            self.record["checks"] = checks
            self.save()
            self.time_all(clock, solution)
            for function, config in configs_of(cuda_extension):
                if config > 0:
                    with self.noting(f"{function} config {config}"):
                        self.one_config(clock, cuda_extension, solution, function, config)

    def time_all(self, clock: Clock, solution: Any) -> None:
        torch = self.torch
        model, inputs = self.draw(3)
        solution.load_state_dict(model.state_dict())
        times: dict[str, float] = {}
        self.record["times_ms"] = times
        times["new"] = clock.median(lambda: solution(*inputs))
        output = solution(*inputs)
        self.record["necessary_bytes"] = sum_bytes(inputs) + sum_bytes([output]) + sum_bytes(list(model.parameters()))
        del output
        self.save()
        for allowed in (False, True):
            suffix = "_tf32" if allowed else ""
            with tf32_matmul(torch, allowed):
                with self.noting("eager" + suffix):
                    times["eager" + suffix] = clock.median(lambda: model(*inputs))
                if allowed in self.compiled:
                    self.model.load_state_dict(model.state_dict())
                    compiled = self.compiled[allowed]
                    with self.noting("compile" + suffix):
                        times["compile" + suffix] = clock.median(lambda: compiled(*inputs))  # noqa: B023
        times["new_again"] = clock.median(lambda: solution(*inputs))

    def one_config(self, clock: Clock, extension: Any, solution: Any, function: str, config: int) -> None:
        original = getattr(extension, function)
        setattr(extension, function, lambda *args, **kwargs: original(*args, **(kwargs | {"config": config})))
        try:
            entry = {"function": function, "config": config, **self.check(solution, 4, eager=False)}
            model, inputs = self.draw(3)
            solution.load_state_dict(model.state_dict())
            entry["ms"] = clock.median(lambda: solution(*inputs))
            self.record["configs"].append(entry)
        finally:
            setattr(extension, function, original)


def sum_bytes(values: Any) -> int:
    return sum(value.numel() * value.element_size() for value in tensors_in(values))


def configs_of(extension: Any) -> Iterator[tuple[str, int]]:
    """(function, config) for every config that a binding's docstring lists as `    N  what it does`."""
    for function in sorted(dir(extension)):
        text = getattr(getattr(extension, function), "__doc__", None)
        if callable(getattr(extension, function)) and text and "\nconfig:" in text:
            listed = re.findall(r"^ {4}(\d+)  \S", text.split("\nconfig:", 1)[1], flags=re.MULTILINE)
            for config in listed:
                yield function, int(config)


def worker(name: str, result: Path, seconds: float, compile_baseline: bool) -> int:
    """Warms up, says "ready", waits for a line on stdin, takes its turn."""
    turn = Turn(name, result, seconds, compile_baseline)
    turn.warm()
    print("ready", flush=True)
    sys.stdin.readline()
    turn.run()
    turn.save()
    return 0


# ---- the parent --------------------------------------------------------------------------------------------------


def build(name: str) -> str | None:
    """None, or the last lines of a build that failed."""
    done = subprocess.run(
        ["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(EXAMPLES / name)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return None if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-30:])


class Child:
    """A worker process: started, asked for its turn, waited for with a limit, its log kept."""

    def __init__(self, name: str, folder: Path, seconds: float, compile_baseline: bool):
        self.name = name
        self.result = folder / f"{name}.json"
        self.log = (folder / f"{name}.log").open("w+")
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", name, "--result", str(self.result)]
        command += ["--seconds", str(seconds)] + ([] if compile_baseline else ["--no-compile"])
        environment = os.environ | {
            "TORCHINDUCTOR_COMPILE_THREADS": "2",
            "TORCHINDUCTOR_CACHE_DIR": str(folder / f"inductor-{name}"),
            "PYTHONPATH": str(ROOT) + (os.pathsep + os.environ["PYTHONPATH"] if os.environ.get("PYTHONPATH") else ""),
        }
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self.log, stderr=subprocess.STDOUT, text=True, env=environment
        )

    def said_ready(self) -> bool:
        return "\nready\n" in "\n" + Path(self.log.name).read_text()

    def wait_ready(self, limit: float) -> None:
        while time.monotonic() < limit and self.process.poll() is None and not self.said_ready():
            time.sleep(0.1)

    def take_turn(self, limit_seconds: float) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name, "problems": []}
        start = time.monotonic()
        try:
            if self.process.poll() is None:
                self.process.communicate("go\n", timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            record["problems"].append(f"stopped after {limit_seconds:.0f} s")
        if self.result.is_file():
            saved = json.loads(self.result.read_text())
            record = saved | {"problems": saved["problems"] + record["problems"]}
        if self.process.returncode != 0:
            tail = Path(self.log.name).read_text().splitlines()[-15:]
            record["problems"].append(f"process ended with {self.process.returncode}: " + " | ".join(tail))
        record["turn_seconds"] = time.monotonic() - start
        return record


def passed(entry: dict[str, Any]) -> bool:
    return entry["failing"] == 0 and not entry["inputs_changed"] and not entry["zeros_would_pass"]


def shown(record: dict[str, Any]) -> list[str]:
    """One row of the table."""
    name = record["name"]
    times = record.get("times_ms", {})
    checks = record.get("checks", [])
    new = times.get("new")
    as_it_comes = times.get("compile", times.get("eager"))
    equal = [times[key] for key in ("eager", "compile", "eager_tf32", "compile_tf32") if key in times]
    flop = NECESSARY_FLOP.get(name)
    if new and flop:
        limit = f"{flop / new * 1e-9:.0f} TFLOP/s"
    elif new and "necessary_bytes" in record:
        rate = record["necessary_bytes"] / new * 1e3
        limit = f"{rate * 1e-12:.2f} TB/s" + (
            f" {100 * rate / record['copy_rate']:.0f}%" if record.get("copy_rate") else ""
        )
    else:
        limit = "-"

    def number(value: float | None, form: str = ".4g") -> str:
        return "-" if value is None else format(value, form)

    return [
        name,
        ("ok" if all(passed(check) for check in checks) else "WRONG") if checks else "-",
        number(max((check["max_abs"] for check in checks), default=None), ".1e"),
        number(max((check["rms_relative"] for check in checks), default=None), ".1e"),
        number(checks[0].get("eager_rms_relative") if checks else None, ".1e"),
        number(new),
        number(times.get("eager")),
        number(times.get("compile")),
        number(times.get("eager_tf32")),
        number(times.get("compile_tf32")),
        number(new / as_it_comes if new and as_it_comes else None, ".3f"),
        number(min(equal) / new if new and equal else None, ".2f") + "x",
        limit,
    ]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def report(records: list[dict[str, Any]]) -> None:
    header = ["workspace", "right", "max err", "rms err", "(eager)", "new ms", "eager", "compile", "eager tf32",
              "comp. tf32", "new/comp", "vs best", "reached"]  # fmt: skip
    print_table([header] + [shown(record) for record in records])
    for record in records:
        for entry in record.get("configs", []):
            state = "ok" if passed(entry) else f"WRONG ({entry['failing']} elements)"
            print(
                f"  {record['name']} {entry['function']} config {entry['config']}: {entry['ms']:.4g} ms, {state}, "
                f"rms err {entry['rms_relative']:.1e}, max {entry['max_abs']:.1e}"
            )
        for check in record.get("checks", []):
            if not check["repeats_bitwise"]:
                print(f"  {record['name']}: two calls with the same inputs differ")
        for problem in record["problems"]:
            print(f"  {record['name']}: {problem}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="workspaces under examples/ (default: all of the gallery)")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--skip-build", action="store_true", help="the workspaces are built already")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--seconds", type=float, default=0.4, help="time spent on each timing, about")
    parser.add_argument("--turn-limit", type=float, default=90.0, help="seconds after which a turn is stopped")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments.worker, arguments.result, arguments.seconds, not arguments.no_compile)

    names = arguments.names or [name for name in NECESSARY_FLOP if (EXAMPLES / name / "model_new.py").is_file()]
    unknown = [name for name in names if not (EXAMPLES / name / "model_new.py").is_file()]
    if unknown:
        print(f"error: no workspace {', '.join(unknown)} in {EXAMPLES}", file=sys.stderr)
        return 2
    if not Path("/dev/nvidiactl").exists():
        print("error: no NVIDIA GPU here; this program measures on one", file=sys.stderr)
        return 2

    start = time.monotonic()
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="gallery-") as folder:
        # Workers need the built module only when their turn comes, so they warm up while the builds run.
        children = [Child(name, Path(folder), arguments.seconds, not arguments.no_compile) for name in names]
        failures: dict[str, str | None] = {}
        if not arguments.skip_build:
            with ThreadPoolExecutor(max_workers=4) as pool:
                failures = dict(zip(names, pool.map(build, names), strict=True))
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        ready_limit = time.monotonic() + 150
        for child in children:
            child.wait_ready(ready_limit)
        print(f"warm after {time.monotonic() - start:.0f} s", flush=True)
        for child in children:
            if failures.get(child.name):
                child.process.kill()
                child.process.wait()
                record = {"name": child.name, "problems": [f"does not build: {failures[child.name]}"]}
            else:
                record = child.take_turn(arguments.turn_limit)
            records.append(record)
            print("  ".join(shown(record)), flush=True)  # in case the whole is cut short
            if arguments.json:
                arguments.json.write_text(
                    json.dumps({"schema": "workbench/gallery_kernels/1", "records": records}, indent=2)
                )
    print(f"\nall after {time.monotonic() - start:.0f} s\n")
    report(records)
    right = all(record.get("checks") and all(passed(check) for check in record["checks"]) for record in records)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
