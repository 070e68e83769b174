"""Ways in which a runner fails, each as one sentence with the solution's own last words beside it."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from typing import Any

from utils.present.visible import visible

# CUDA errors after which the context of the process is lost, as they appear in messages.
_FATAL = (
    "illegal memory access",
    "misaligned address",
    "device-side assert",
    "unspecified launch failure",
    "illegal instruction",
    "illegal address",
    "invalid program counter",
    "hardware stack error",
    "launch timed out",
    "uncorrectable ECC",
    "invalid address space",
)
_DEEDS = {
    "hello": "starting",
    "import": "importing the solution",
    "construct": "constructing ModelNew",
    "load": "loading the weights",
    "put": "receiving inputs",
    "call": "running forward",
    "again": "reading an earlier result",
    "state": "reading the state_dict",
    "settle": "waiting for the device",
    "drop": "forgetting inputs",
    "bye": "ending",
}


@dataclass
class RunnerFailed(Exception):
    """The runner cannot go on, or the solution raised.

    kind: exception | gpu_fault | launch | crash | exit | timeout | memory | protocol | harness
    sentence: what happened, for a person; `where` is the operation, `output` what the solution printed last.
    alive: whether the runner can be asked for more.
    """

    kind: str
    sentence: str
    where: str
    output: str = ""
    alive: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence


def deed(where: str) -> str:
    return _DEEDS.get(where, where)


def fatal_error(message: str) -> str | None:
    """The name of a CUDA error that ended the context, when `message` tells of one."""
    return next((name for name in _FATAL if name in message), None)


def raised(where: str, error: dict[str, Any]) -> RunnerFailed:
    """What the solution raised, from the runner's description of it."""
    kind, message, line = error["type"], error["message"], error["line"]
    if not kind.isidentifier():
        # A class may be given any name, one that reads like a line of ours among them.
        kind = visible(" ".join(kind.split()), keep="")
    line = visible(line, keep="")
    first = visible(" ".join(message.split()), keep="")
    first = first if len(first) <= 400 else first[:397] + "..."
    at = f" at {line}" if line else ""
    fault = fatal_error(message)
    details = {"type": kind, "message": message, "line": line, "trace": error["trace"], "phase": error["where"]}
    if fault:
        return RunnerFailed("gpu_fault", f"ModelNew crashed the GPU context ({fault})", where, details=details)
    if error["where"] == "harness":
        sentence = f"the runner itself failed while {deed(where)}: {kind}: {first}"
        return RunnerFailed("harness", sentence, where, details=details)
    if kind == "OutOfMemoryError" or "out of memory" in message:
        return RunnerFailed("out_of_memory", f"ModelNew ran out of memory{at}: {first}", where, details=details)
    if "no kernel image is available" in message:
        return RunnerFailed(
            "no_image",
            "no kernel image for this device in the solution's binary code: build it for this architecture",
            where,
            details=details,
        )
    doing = {
        "import": "importing the solution",
        "construct": "ModelNew's constructor",
        "load_state_dict": "loading the weights",
        "forward": "forward",
        "after forward": "the result of forward",
    }.get(error["where"], error["where"])
    if error["where"] == "load_state_dict" and "Error(s) in loading state_dict" in message:
        return RunnerFailed(
            "state_dict", f"ModelNew cannot take Model's weights: {keys(message)}", where, alive=True, details=details
        )
    if kind == "SystemExit":
        return RunnerFailed(
            "exit",
            f"the solution tried to end the process in {doing}{at} (SystemExit)",
            where,
            alive=True,
            details=details,
        )
    if kind == "ModuleNotFoundError" and "cuda_extension" in message:
        sentence = "the module cuda_extension is not there: run `bash utils/compile.sh` first"
        return RunnerFailed("missing_module", sentence, where, alive=True, details=details)
    return RunnerFailed("exception", f"{doing} raised {kind}{at}: {first}", where, alive=True, details=details)


def ended(where: str, status: int | None, output: str) -> RunnerFailed:
    """The process ended in the middle of something. `status` is negative for a signal."""
    doing = deed(where)
    fault = fatal_error(output)
    if fault and status not in (0, None):
        return RunnerFailed("gpu_fault", f"ModelNew crashed the GPU context ({fault})", where, output)
    if status is None:
        return RunnerFailed("protocol", f"the solution closed the connection to the judge while {doing}", where, output)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = {
            "SIGSEGV": ", an invalid memory access on the host",
            "SIGABRT": ", an uncaught C++ exception or a failed assertion",
        }.get(name, "")
        return RunnerFailed(
            "crash",
            f"the solution's process crashed while {doing} ({name}{hint})",
            where,
            output,
            details={"signal": name},
        )
    sentence = (
        f"the solution's process ended by itself with exit code {status} while {doing}: an early exit "
        "is a failure whatever its code"
    )
    return RunnerFailed("exit", sentence, where, output, details={"exit_code": status})


def keys(message: str) -> str:
    """An exact account of what load_state_dict complained of: missing, unexpected, and keys of another shape."""
    parts = []
    for label in ("Missing", "Unexpected"):
        found = re.search(rf"{label} key\(s\) in state_dict: (.+?)\.\s*(?:\n|$)", message)
        if found:
            names = ", ".join(re.findall(r'"([^"]+)"', found[1]))
            parts.append(
                f"Model has no {names} that ModelNew wants" if label == "Missing" else f"ModelNew has no {names}"
            )
    for name, theirs, ours in re.findall(
        r"size mismatch for (\S+): copying a param with shape torch\.Size\((.*?)\) from checkpoint, "
        r"the shape in current model is torch\.Size\((.*?)\)",
        message,
    ):
        parts.append(f"{name} has shape {ours}, in Model {theirs}")
    return "; ".join(parts) or " ".join(message.split())[:400]
