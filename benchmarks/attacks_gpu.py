"""Runs the corpus of attacks on a GPU and tells what the judge made of each.

    python benchmarks/attacks_gpu.py --json attacks.json

Every solution of tests/attacks/solutions with the device's tensors, those with kernels with an extension built
once, and the three builds for other architectures (C53). Several verifications share the GPU: only verdicts are
measured here, and the seconds of each say how long a refusal takes under that load.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/attacks")]

from attack_corpus import (  # noqa: E402
    ALONE,
    Attack,
    Outcome,
    Pool,
    build_gpu,
    corpus,
    for_gpu,
    gpu_corpus,
    missed,
)

# Seconds to wait for one solution, its turn included; a judge takes its own time limits into account long before.
_PATIENCE = 900


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=6, help="verifications at a time (default: %(default)s)")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--json", metavar="FILE", help="write every result")
    options = parser.parse_args()
    begun = time.monotonic()
    rows: list[dict[str, Any]] = []
    gpu = options.device != "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        built, builds = Path(scratch, "built"), {}
        if gpu:
            builds = _builds(Path(scratch), built)
        attacks = for_gpu(corpus()) + gpu_corpus() if gpu else corpus()
        attacks = [attack for attack in attacks if options.only in attack.name]
        for alone in (False, True):
            chosen = [attack for attack in attacks if attack.name.startswith(ALONE) == alone]
            if not chosen and options.only:
                continue
            pool = Pool(1 if alone else options.workers)
            try:
                rows += _judge(pool, chosen, options.device, str(built))
                if alone and gpu and not options.only:
                    rows += _other_architectures(pool, builds, options.device)
            finally:
                pool.close()
    seconds = time.monotonic() - begun
    wrong = [row for row in rows if row["missed"]]
    print(f"{len(rows)} solutions in {seconds:.0f} s; {len(wrong)} not as expected")
    for row in wrong:
        print(f"  {row['attack']}: {row['missed'][:300]}")
    if options.json:
        record = {"device": options.device, "device_name": _device_name(options.device), "seconds": seconds}
        Path(options.json).write_text(json.dumps({**record, "attacks": rows}, indent=1) + "\n")
    return 1 if wrong else 0


def _builds(scratch: Path, built: Path) -> dict[str, Path]:
    """The extension for the visible GPU, for sm_80 alone, and for sm_80 with PTX, side by side."""
    places = {"": built, "8.0": scratch / "sm80", "8.0+PTX": scratch / "sm80-ptx"}
    for place in places.values():
        place.mkdir()
    with ThreadPoolExecutor(len(places)) as executor:
        said = list(executor.map(lambda item: build_gpu(item[1], item[0]), places.items()))
    for (name, _), text in zip(places.items(), said, strict=True):
        if text:
            raise SystemExit(f"the faulty kernels do not build for {name or 'this GPU'}: {text}")
    return {name: place for name, place in places.items() if name}


def _judge(pool: Pool, attacks: list[Attack], device: str, built: str) -> list[dict[str, Any]]:
    futures: list[tuple[Attack, Future[Outcome]]] = []
    for attack in attacks:
        start = built if attack.name.startswith("gpu_") else None
        futures.append((attack, pool.submit(attack, {"device": device}, start)))
    return [_row(attack, future) for attack, future in futures]


def _other_architectures(pool: Pool, builds: dict[str, Path], device: str) -> list[dict[str, Any]]:
    """C53: code for another major architecture is named; with PTX beside it the driver compiles and all is well."""
    honest = next(attack for attack in gpu_corpus() if attack.name == "gpu_honest")
    rows = []
    for name, expected, phrase in (("8.0", "CANNOT TELL", "rebuild with"), ("8.0+PTX", "PASS", "")):
        attack = replace(honest, entry="C53", verdict=expected, phrase=phrase)
        row = _row(attack, pool.submit(attack, {"device": device}, str(builds[name])))
        rows.append({**row, "attack": f"gpu_honest built for {name}"})
    return rows


def _row(attack: Attack, future: Future[Outcome]) -> dict[str, Any]:
    try:
        outcome = future.result(_PATIENCE)
    except Exception as error:  # a worker that died takes its whole pool with it
        outcome = Outcome("DEFECT", [f"{type(error).__name__}: {error}"])
    expected = attack.verdict + (f" {'|'.join(sorted(attack.kinds))}" if attack.kinds else "")
    reason = outcome.reasons[0] if outcome.reasons else ""
    row = {
        "attack": attack.name,
        "entry": attack.entry,
        "expected": expected,
        "phrase": attack.phrase,
        "verdict": outcome.verdict,
        "kinds": sorted(outcome.kinds()),
        "reason": reason,
        "seconds": round(outcome.seconds, 2),
        "missed": missed(attack, outcome),
    }
    mark = "BAD" if row["missed"] else "ok "
    print(f"{mark} {attack.name:34} {expected:38.38} {outcome.verdict:11} {outcome.seconds:6.1f} s  {reason[:120]}")
    sys.stdout.flush()
    return row


def _device_name(device: str) -> str:
    if device == "cpu":
        return "cpu"
    import torch

    return torch.cuda.get_device_name(torch.device(device))


if __name__ == "__main__":
    sys.exit(main())
