"""A profiling record made of synthetic samples through the real assembly, for the tests of what is drawn from it."""

import random

from utils.present.record import envelope, plain
from utils.timing import result
from utils.timing.baselines import Built
from utils.timing.kernels import attribute_bytes, table
from utils.timing.limits import Rates
from utils.timing.rounds import Sampled, Turn
from utils.timing.variants import Variant
from utils.timing.witness import judge
from utils.timing.work import Work

VARIANTS = [
    Variant("compile"),
    Variant("compile", "tf32"),
    Variant("eager"),
    Variant("eager", "tf32"),
    Variant("max-autotune", "tf32"),
]
LEVELS = {"solution": 0.84, "compile": 3.1, "compile/tf32": 0.97, "eager": 3.4, "eager/tf32": 1.2}


def sampled(levels=None, rounds=10, per_turn=30, seed=0) -> Sampled:
    draw = random.Random(seed)
    levels = levels or LEVELS
    turns = {name: [] for name in levels}
    for number in range(rounds):
        for name, level in levels.items():
            samples = tuple(level * (1 + abs(draw.gauss(0, 0.01))) for _ in range(per_turn))
            start = number + 0.1
            turns[name].append(
                Turn(number, samples, samples[:3], (sum(samples) + sum(samples[:3])) / 1e3 + 0.001, start, start + 0.1)
            )
    failed = {"max-autotune/tf32": "RuntimeError: out of shared memory"}
    return Sampled(turns, dict.fromkeys(levels, per_turn), {}, rounds, "precise", 6.5, failed)


def evidence(**changes) -> result.Evidence:
    taken = changes.pop("sampled", None) or sampled()
    rates = Rates(4.3e12, {"fp32": 5.2e13, "tf32": 3.8e14, "bf16": 7.8e14}, "2026-01-02", "NVIDIA H200")
    work = Work(
        133_177_540_608,
        703_266_816,
        38_535_168,
        21_258_240,
        38_535_168,
        {"addmm": 118_380_036_096, "convolution": 14_797_504_512},
    )
    events = [
        {"name": "void layernorm_kernel<256>(float const*, float*, int)", "us": 28.0, "grid": [12544, 1, 1],
         "block": [256, 1, 1], "registers": 40, "shared_bytes": 1024, "occupancy": 75},
        {"name": "nvjet_tst_128x256_64x4", "us": 340.0, "grid": [132, 1, 1], "block": [384, 1, 1], "registers": 168,
         "shared_bytes": 200704, "occupancy": 19},
        {"name": "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", "us": 12.0,
         "grid": [1000, 1, 1], "block": [128, 1, 1], "registers": 24, "shared_bytes": 0, "occupancy": 90},
        {"name": "Memcpy DtoD (Device -> Device)", "us": 2.0, "bytes": 4_000_000},
    ]  # fmt: skip
    settings = {
        "sampled": taken,
        "variants": VARIANTS,
        "built": {v.key: Built(v, 7.5, 1, 0, 0, 1e-4) for v in VARIANTS},
        "precision": "tf32",
        "precision_class": "TF32",
        "target": 0.95,
        "extras": {"solution": result.Extra(0.9, 0.83), "compile": result.Extra(3.2, 3.1)},
        "witness": judge(taken.batches("solution"), 0.03),
        "checked": 12,
        "work": work,
        "rates": rates,
        "kernels": attribute_bytes(table(events), work.bytes),
        "gpu": {
            "available": True,
            "name": "NVIDIA H200",
            "sm_mhz": {"min": 1200, "median": 1755, "max": 1980},
            "throttle_reasons": [],
        },
    }
    return result.Evidence(**{**settings, **changes})


def example(**changes) -> dict:
    built = result.build(evidence(**changes))
    return plain(
        envelope(
            "profiling",
            built.verdict,
            0 if built.met else 1,
            built.headline,
            settings={"target": 0.95, "seed": 1234},
            environment={"torch": "2.11.0", "digests": {"model.py": "ab" * 32}},
            results=built.results,
        )
    )
