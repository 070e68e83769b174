"""Time the root workspace's kernels and its whole model on the GPU.

    bash utils/compile.sh && python benchmarks/default_kernels.py [--json FILE] [--quick]

Correctness first: ModelNew and every config of every operator are compared with fp64 before anything is timed, and a
mismatch ends the run with code 1. Then, each call with a cold L2, medians of CUDA-event times:

    operators    every config, as bytes per second against the measured copy bandwidth and as FLOP per second
    whole model  ModelNew against eager and torch.compile, as they come and with TF32 allowed
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ATOL = RTOL = 1e-2  # of the verification


class Clock:
    """Times of single calls in milliseconds, with CUDA events, each after a flush of L2.

    The flush reads: written lines would have to go back to memory while the call runs, at the call's expense. It also
    keeps the GPU busy while the host enqueues the call, so launch latency stays out of the times as long as a call
    takes the host less than the flush takes the GPU.
    """

    def __init__(self) -> None:
        flush_bytes = 6 * torch.cuda.get_device_properties(0).L2_cache_size
        self._buffer = torch.ones(flush_bytes // 4, device="cuda")
        self._sum = torch.empty((), device="cuda")

    def times(self, call: Callable[[], object], repeats: int) -> list[float]:
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        for start, stop in events:
            torch.sum(self._buffer, dim=0, out=self._sum)
            start.record()
            call()
            stop.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(stop) for start, stop in events]

    def median(self, call: Callable[[], object], repeats: int, warmup: int = 5) -> float:
        self.times(call, warmup)
        return statistics.median(self.times(call, repeats))


@contextmanager
def matmul_precision(precision: str):
    """float32 products as they come ("highest") or with TF32 allowed ("high"), for the duration."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@dataclass
class Work:
    """What one call must at least do: bytes to and from memory, multiply-adds counted as two FLOPs."""

    bytes: int
    flops: int


@dataclass
class Row:
    """One line of the first table."""

    operator: str
    config: int
    ms: float
    tb_per_s: float
    share_of_copy: float
    tflop_per_s: float
    worst_error: float


def worst_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest |actual - expected| as a multiple of what the verification allows; below 1 passes."""
    return ((actual.double() - expected).abs() / (ATOL + RTOL * expected.abs())).max().item()


LAYERS = {"patch_embed": "patch_embed", "layer_norm": "norm", "linear_gelu": "fc1", "linear_residual": "fc2"}


class Operators:
    """The four operators on the tensors of the default model, with references in fp64."""

    def __init__(self, ext, problem, images: torch.Tensor) -> None:
        self.ext, self.images = ext, images
        self.state = {name: value.detach() for name, value in problem.named_parameters()}
        exact = deepcopy(problem).double()
        tokens = exact.patch_embed(images.double()).flatten(2).transpose(1, 2)
        normed = exact.norm(tokens)
        hidden = exact.act(exact.fc1(normed))
        output = tokens + exact.fc2(hidden)
        self.expected = {
            "patch_embed": tokens,
            "layer_norm": normed,
            "linear_gelu": hidden,
            "linear_residual": output,
        }
        self.tokens, self.normed, self.hidden = (t.float().contiguous() for t in (tokens, normed, hidden))

    def call(self, operator: str, config: int) -> torch.Tensor:
        inputs = {
            "patch_embed": self.images,
            "layer_norm": self.tokens,
            "linear_gelu": self.normed,
            "linear_residual": self.hidden,
        }
        parameters = [self.state[f"{LAYERS[operator]}.{kind}"] for kind in ("weight", "bias")]
        residual = [self.tokens] if operator == "linear_residual" else []
        return getattr(self.ext, operator)(inputs[operator], *parameters, *residual, config=config)

    def work(self, operator: str) -> Work:
        weight = self.state[f"{LAYERS[operator]}.weight"]
        rows = self.tokens.numel() // self.tokens.shape[-1]
        read = {
            "patch_embed": self.images.numel(),
            "layer_norm": self.tokens.numel(),
            "linear_gelu": self.normed.numel(),
            "linear_residual": self.hidden.numel() + self.tokens.numel(),
        }[operator]
        written = self.expected[operator].numel()
        flops = 8 * self.tokens.numel() if operator == "layer_norm" else 2 * rows * weight.numel()
        return Work(bytes=4 * (read + weight.numel() + written), flops=flops)


CONFIGS = {
    "patch_embed": range(4),
    "layer_norm": range(4),
    "linear_gelu": range(5),
    "linear_residual": range(5),
}


def copy_bandwidth(clock: Clock, elements: int, repeats: int) -> float:
    """Bytes per second of a plain device copy of `elements` floats: each byte read once and written once."""
    source = torch.randn(elements, device="cuda")
    target = torch.empty_like(source)
    return 8 * elements / (clock.median(lambda: target.copy_(source), repeats) * 1e-3)


def operator_rows(clock: Clock, operators: Operators, bandwidth: float, repeats: int) -> list[Row]:
    rows = []
    for operator, configs in CONFIGS.items():
        work = operators.work(operator)
        for config in configs:
            error = worst_error(operators.call(operator, config), operators.expected[operator])
            if not error < 1:
                raise SystemExit(f"{operator} config {config} is wrong: {error:.3g} times the allowed error")
            seconds = 1e-3 * clock.median(partial(operators.call, operator, config), repeats)
            rate = work.bytes / seconds
            rows.append(
                Row(operator, config, 1e3 * seconds, rate / 1e12, rate / bandwidth, work.flops / seconds / 1e12, error)
            )
    return rows


def large_layer_norm(clock: Clock, ext, bandwidth: float, repeats: int) -> dict[int, dict[str, float]]:
    """layer_norm on 2^18 rows of 768, far more than L2 holds: milliseconds and share of copy bandwidth by config."""
    rows, n = 2**18, 768
    x, weight, bias = torch.randn(rows, n, device="cuda"), torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    result = {}
    for config in CONFIGS["layer_norm"]:
        ms = clock.median(partial(ext.layer_norm, x, weight, bias, config=config), repeats)
        result[config] = {"ms": ms, "share_of_copy": 8 * rows * n / (ms * 1e-3) / bandwidth}
    return result


def whole_model(
    clock: Clock, ext, model, model_new, images: torch.Tensor, rounds: int, repeats: int
) -> dict[str, dict]:
    """Medians of the whole model in each variant, interleaved in rounds so that clock drift cancels."""
    arguments = model.get_init_inputs()
    problem = model.Model(*arguments).eval().cuda()
    solution = model_new.ModelNew(*arguments).eval().cuda()
    solution.load_state_dict(problem.state_dict())

    def with_configs(embed: int, norm: int, linear: int) -> Callable[[torch.Tensor], torch.Tensor]:
        s = solution

        def forward(x: torch.Tensor) -> torch.Tensor:
            tokens = ext.patch_embed(x, s.patch_embed.weight, s.patch_embed.bias, config=embed)
            normed = ext.layer_norm(tokens, s.norm.weight, s.norm.bias, s.norm.eps, config=norm)
            hidden = ext.linear_gelu(normed, s.fc1.weight, s.fc1.bias, config=linear)
            return ext.linear_residual(hidden, s.fc2.weight, s.fc2.bias, tokens, config=linear)

        return forward

    variants: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
        "ModelNew": ("highest", solution),
        "ModelNew, norm config 1": ("highest", with_configs(0, 1, 0)),
        "ModelNew, norm config 2": ("highest", with_configs(0, 2, 0)),
        "ModelNew, embed config 2": ("highest", with_configs(2, 0, 0)),
        "ModelNew, linear config 1": ("highest", with_configs(0, 0, 1)),
        "ModelNew, linear config 2": ("highest", with_configs(0, 0, 2)),
        "ModelNew, strict fp32": ("highest", with_configs(3, 0, 3)),
        "eager": ("highest", problem),
        "eager, TF32": ("high", problem),
    }
    for name, precision in (("torch.compile", "highest"), ("torch.compile, TF32", "high")):
        copy = model.Model(*arguments).eval().cuda()
        copy.load_state_dict(problem.state_dict())
        variants[name] = (precision, torch.compile(copy))

    expected = model.Model(*arguments).eval().cuda()
    expected.load_state_dict(problem.state_dict())
    exact = expected.double()(images.double())
    errors: dict[str, float] = {}
    host: dict[str, float] = {}
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for name, (precision, forward) in variants.items():
        with matmul_precision(precision):
            errors[name] = worst_error(forward(images), exact)
            if not errors[name] < 1:
                raise SystemExit(f"{name} is wrong: {errors[name]:.3g} times the allowed error")
            clock.times(partial(forward, images), 5)
            host[name] = host_microseconds(partial(forward, images))
    for _ in range(rounds):
        for name, (precision, forward) in variants.items():
            with matmul_precision(precision):
                samples[name] += clock.times(partial(forward, images), repeats)
    return {
        name: {
            "ms": statistics.median(times),
            "min_ms": min(times),
            "max_ms": max(times),
            "worst_error": errors[name],
            "host_us": host[name],
        }
        for name, times in samples.items()
    }


def host_microseconds(call: Callable[[], object], calls: int = 50) -> float:
    """What one call costs the host, which does not wait for the GPU: the least time a call of any size can take."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return 1e6 * seconds / calls


def main() -> int:
    parser = argparse.ArgumentParser(description="time the root workspace's kernels and its whole model")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("this benchmark needs an NVIDIA GPU; torch sees none", file=sys.stderr)
        return 2
    try:
        import cuda_extension as ext
    except ModuleNotFoundError:
        print("the extension is not built; run: bash utils/compile.sh", file=sys.stderr)
        return 2
    import model
    import model_new

    torch.manual_seed(0)
    repeats = 30 if options.quick else 60
    began = time.perf_counter()
    clock = Clock()
    with torch.no_grad():
        (images,) = model.get_inputs()
        images = images.cuda()
        bandwidth = copy_bandwidth(clock, 2**28, 30)
        same_size = copy_bandwidth(clock, images.numel(), repeats)
        print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
        megabytes = images.numel() * 4 / 1e6
        print(f"copy: {bandwidth / 1e12:.2f} TB/s (1 GiB), {same_size / 1e12:.2f} TB/s ({megabytes:.1f} MB)\n")

        rows = operator_rows(
            clock, Operators(ext, model.Model(*model.get_init_inputs()).cuda(), images), bandwidth, repeats
        )
        print("operator         config       ms    TB/s  of copy  TFLOP/s  error/allowed")
        for row in rows:
            print(
                f"{row.operator:<16} {row.config:>6} {row.ms:>8.4f} {row.tb_per_s:>7.2f} {row.share_of_copy:>7.0%}"
                f" {row.tflop_per_s:>8.1f} {row.worst_error:>14.4f}"
            )
        large = large_layer_norm(clock, ext, bandwidth, 30)
        print("\nlayer_norm, 262144 x 768")
        for config, figures in large.items():
            print(f"    config {config}: {figures['ms']:.4f} ms, {figures['share_of_copy']:.0%} of copy")

        whole = whole_model(clock, ext, model, model_new, images, rounds=5, repeats=repeats // 5)

    print("\nwhole model                      ms  error/allowed  host us")
    for name, figures in whole.items():
        print(f"{name:<28} {figures['ms']:>8.4f} {figures['worst_error']:>14.4f} {figures['host_us']:>8.1f}")
    new = whole["ModelNew"]["ms"]
    ratios = {
        "against torch.compile as it comes (target 0.40)": new / whole["torch.compile"]["ms"],
        "against torch.compile with TF32 (target 0.95)": new / whole["torch.compile, TF32"]["ms"],
        "strict fp32 against torch.compile as it comes": whole["ModelNew, strict fp32"]["ms"]
        / whole["torch.compile"]["ms"],
    }
    print()
    for name, ratio in ratios.items():
        print(f"{ratio:.3f}  {name}")
    seconds = time.perf_counter() - began
    print(f"\ntook {seconds:.0f} s")
    if options.json:
        record = {
            "gpu": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(),
            "build": getattr(ext, "__build__", None),
            "repeats": repeats,
            "copy_bytes_per_s": {"1 GiB": bandwidth, "image batch": same_size},
            "operators": [asdict(row) for row in rows],
            "layer_norm_262144x768": large,
            "whole_model": whole,
            "ratios": ratios,
            "seconds": seconds,
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
