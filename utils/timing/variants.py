"""The baselines by name: how Model is run (mode), and what arithmetic it may use (precision)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.present.outcome import CannotTell

# torch.compile's own mode names; "compile" is its default and the official baseline.
MODES = ("eager", "compile", "reduce-overhead", "max-autotune")
OFFICIAL = "compile"
# As it comes: matmul in fp32, convolutions in TF32 (torch's defaults). The others are what a solution may show.
AS_IT_COMES = "default"
PRECISIONS = (AS_IT_COMES, "tf32", "bf16", "fp16")
_WORDS = {AS_IT_COMES: "", "tf32": " (TF32 allowed)", "bf16": " (bf16 autocast)", "fp16": " (fp16 autocast)"}


@dataclass(frozen=True)
class Variant:
    """One baseline. `key` names it in JSON, `label` for a person."""

    mode: str
    precision: str = AS_IT_COMES

    @property
    def key(self) -> str:
        return self.mode if self.precision == AS_IT_COMES else f"{self.mode}/{self.precision}"

    @property
    def label(self) -> str:
        name = {"eager": "eager", "compile": "torch.compile"}.get(self.mode, f"torch.compile {self.mode}")
        return name + _WORDS[self.precision]


def process_of(variant: Variant) -> str:
    """The name of the process that runs `variant`: torch's flags are global to a process, so no two precisions share
    one. The modes of torch.compile do not either: they build side by side, and one that fails takes no other down.
    Eager, which needs no building, shares that of the official mode."""
    return Variant(OFFICIAL if variant.mode == "eager" else variant.mode, variant.precision).key


def parse_modes(text: str) -> list[str]:
    """The modes named in `--baselines`: a comma-separated list, "official" or "all". The official one is always
    among them."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["all"]:
        return list(MODES)
    if words == ["official"]:
        return ["eager", OFFICIAL]
    unknown = [word for word in words if word not in MODES]
    if unknown or not words:
        raise CannotTell(
            f"--baselines does not know {', '.join(unknown) or 'an empty list'}; "
            f"give official, all, or some of {', '.join(MODES)}"
        )
    return [mode for mode in MODES if mode in words or mode == OFFICIAL]


def variants(modes: Sequence[str], precision: str) -> list[Variant]:
    """The baselines to time: each mode as it comes, and at `precision` where that is another one; the cheapest to
    build first."""
    plain = [Variant(mode) for mode in modes]
    equal = [Variant(mode, precision) for mode in modes] if precision != AS_IT_COMES else []
    cost = {mode: place for place, mode in enumerate(("compile", "eager", "reduce-overhead", "max-autotune"))}
    return sorted([*plain, *equal], key=lambda variant: (cost[variant.mode], variant.precision != AS_IT_COMES))


def precision_for(precision_class: str | None) -> str:
    """The baseline's precision that equals a solution's precision class ("fp32", "tf32", "bf16", "fp16" or worse,
    None unknown)."""
    word = (precision_class or "").lower()
    if "tf32" in word:
        return "tf32"
    # An error beyond bf16's is met by nothing faster than bf16 that is still honest.
    if "bf16" in word or "worse" in word:
        return "bf16"
    if "fp16" in word or "half" in word:
        return "fp16"
    return AS_IT_COMES


def rate_for(precision: str, fp64: bool = False) -> str:
    """The key of limits.Rates.matrix that bounds a solution of this precision. As it comes means fp32 matmul."""
    if fp64:
        return "fp64"
    return "fp32" if precision == AS_IT_COMES else precision
