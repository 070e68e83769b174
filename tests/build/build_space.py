"""A workspace in a temporary folder and the commands of the build on it; the sources of a small pair."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).resolve().parent / "files"

# A pair without torch's headers: its binding compiles in three seconds instead of ten.
SCALE_CU = """\
#include <cuda_runtime.h>

__global__ void scale_kernel(float* output, const float* input, int size, float factor) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) output[index] = input[index] * factor;
}

extern "C" void scale_launcher(float* output, const float* input, int size, float factor, cudaStream_t stream) {
    scale_kernel<<<(size + 255) / 256, 256, 0, stream>>>(output, input, size, factor);
}
"""
SCALE_BINDING = """\
#include <cuda_runtime.h>

#include "../binding_registry.h"

extern "C" void scale_launcher(float* output, const float* input, int size, float factor, cudaStream_t stream);

bool scale(std::uintptr_t output, std::uintptr_t input, int size, float factor) {
    if (size == 0) return false;
    scale_launcher(reinterpret_cast<float*>(output), reinterpret_cast<const float*>(input), size, factor, nullptr);
    return true;
}

void register_scale(pybind11::module& m) { m.def("scale", &scale); }

REGISTER_BINDING(scale, register_scale);
"""


@dataclass
class Outcome:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Space:
    """A workspace in a temporary folder, and the commands of the build on it."""

    root: Path
    environment: dict[str, str]

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text, f"{old!r} is not in {name}"
        self.write(name, text.replace(old, new))

    def command(self, *arguments: str) -> list[str]:
        return ["bash", str(ROOT / "utils/compile.sh"), "--workspace", str(self.root), *arguments]

    def compile(self, *arguments: str, **environment: str | None) -> Outcome:
        """Runs compile.sh here; keywords change the environment, None removes a variable."""
        changed = {**self.environment, **{key: value for key, value in environment.items() if value is not None}}
        for key in [key for key, value in environment.items() if value is None]:
            changed.pop(key, None)
        done = subprocess.run(self.command(*arguments), env=changed, capture_output=True, text=True, timeout=570)
        return Outcome(done.returncode, done.stdout, done.stderr)

    @property
    def modules(self) -> list[Path]:
        return sorted(self.root.glob("cuda_extension*.so"))

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads(self.read("build/build_facts.json"))

    def python(self, program: str) -> Outcome:
        """Runs a Python program in the workspace, with the module importable."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)
