"""nvcc, its two halves side by side.

    python halves.py nvcc ARGUMENTS...

nvcc compiles a file for the host (preprocessor, cudafe++) and for the device (preprocessor, cicc, ptxas, fatbinary),
and then has the host compiler put together what both made. It takes one step after the other, though the halves need
nothing of each other but the name that the file's own symbols get, which either of them works out. Here they run at the
same time.

The steps are those that `nvcc --dryrun` prints. Whatever is not exactly as expected there (several architectures,
another nvcc with other steps, names that the halves do not agree on) is left to nvcc itself, and so is everything where
one compiler at a time was asked for (MAX_JOBS=1). The object, its dependencies, what is printed and the exit code are
as nvcc's. Only the standard library, and little of it, as this starts with every file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

# Which step a line is: every one of these must be there, once, and beside them only what is passed over.
_STEPS = {
    "device source": re.compile(r" -E .*\.cpp1\.ii\"? *$"),
    "host source": re.compile(r" -E .*\.cpp4\.ii\"? *$"),
    "host": re.compile(r"^cudafe\+\+ "),
    "device": re.compile(r"^(\"\$CICC_PATH/cicc\"|cicc) "),
    "assemble": re.compile(r"^ptxas "),
    "pack": re.compile(r"^fatbinary "),
    "join": re.compile(r" -c -x c\+\+ .*\.cudafe1\.cpp\" -o "),
}
_PASSED_OVER = re.compile(r"^-- Filter Dependencies -- |^rm ")
_NAME = re.compile(r'(--module_id_file_name )"([^"]+)"')


def steps(said: str) -> tuple[dict[str, str], dict[str, str]] | None:
    """(commands by name, variables they are run with) from what --dryrun printed; None where it is not as expected."""
    commands: dict[str, str] = {}
    variables: dict[str, str] = {}
    for line in said.splitlines():
        if not line.startswith("#$ "):
            return None  # a warning about the arguments, say: nvcc's to tell
        text = line[3:]
        if re.match(r"[A-Za-z_]\w*=", text):
            name, _, value = text.partition("=")
            variables[name] = value
            continue
        if _PASSED_OVER.match(text):
            continue
        kinds = [kind for kind, pattern in _STEPS.items() if pattern.search(text)]
        if len(kinds) != 1 or kinds[0] in commands:
            return None
        commands[kinds[0]] = text
    names = _NAME.findall(commands.get("host", "")) + _NAME.findall(commands.get("device", ""))
    as_expected = len(commands) == len(_STEPS) and len(names) == 2 and names[0] == names[1]
    if not as_expected or "--gen_module_id_file" in commands["device"]:
        return None
    return commands, variables


def compile_in_halves(nvcc: list[str], folder: Path) -> int | None:
    """The exit code, or None where the file is nvcc's to compile. Temporary files lie in `folder`."""
    if os.environ.get("MAX_JOBS", "").strip() == "1" or os.cpu_count() == 1:
        return None
    environment = {**os.environ, "TMPDIR": str(folder)}
    plan = subprocess.run(
        [*nvcc, "--dryrun"], env=environment, capture_output=True, text=True, errors="surrogateescape"
    )
    found = steps(plan.stderr) if plan.returncode == 0 and not plan.stdout else None
    if found is None:
        return None
    commands, variables = found
    environment.update(variables)
    name = _NAME.findall(commands["host"])[0][1]
    commands["device"] = _NAME.sub(r'--gen_module_id_file \1"\2.device"', commands["device"])
    dependencies = _depfile(nvcc)
    if dependencies:
        for step in ("host source", "device source"):
            commands[step] += f' -MMD -MQ "{nvcc[nvcc.index("-o") + 1]}" -MF "{folder}/{step}.d"'

    def begun(*which: str) -> _Running:
        return _Running([commands[step] for step in which], environment, folder / which[0])

    with begun("host source", "host") as host, begun("device source", "device", "assemble", "pack") as device:
        # nvcc would stop at the host's errors, of which the device's half may find some as well.
        code = host.ended() or device.ended()
    if code == 0 and Path(name).read_bytes() != Path(f"{name}.device").read_bytes():
        return None
    host.show()
    if code and host.ended():
        return code
    device.show()
    if code:
        return code
    with begun("join") as join:
        code = join.ended()
    join.show()
    if code == 0 and dependencies:
        _merge(folder / "device source.d", folder / "host source.d", Path(dependencies))
    return code


class _Running:
    """Commands one after the other until one fails, what they print going to a file. Leaving ends them at once."""

    def __init__(self, commands: list[str], environment: dict[str, str], output: Path) -> None:
        self._output = output
        with open(output, "wb") as file:
            self._process = subprocess.Popen(
                ["sh", "-c", " && ".join(commands)],
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def ended(self) -> int:
        """The exit code, once it is there; as a shell tells it where a signal ended the process."""
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def show(self) -> None:
        sys.stdout.buffer.write(self._output.read_bytes())
        sys.stdout.buffer.flush()


def _depfile(nvcc: list[str]) -> str:
    return nvcc[nvcc.index("-MF") + 1] if "-MF" in nvcc and "-o" in nvcc else ""


def _merge(one: Path, other: Path, target: Path) -> None:
    """Both halves' dependencies as one rule: a header may be included for one of them alone."""
    rule = one.read_bytes().rstrip()
    more = other.read_bytes().rstrip().partition(b":")[2]
    target.write_bytes(rule + b" \\\n" + more.lstrip(b" ") + b"\n")


def _gone(folder: Path) -> None:
    for entry in os.scandir(folder):
        os.unlink(entry)
    folder.rmdir()


def _ended(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def main(nvcc: list[str]) -> int:
    """Compiles as the arguments say; becomes nvcc itself where that is to do it."""
    signal.signal(signal.SIGTERM, _ended)
    folder = Path(os.environ.get("TMPDIR") or "/tmp") / f"kernel-workbench-nvcc-{os.getpid()}"
    code = None
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        pass  # nvcc says what is wrong with the place
    else:
        try:
            code = compile_in_halves(nvcc, folder)
        finally:
            _gone(folder)
    if code is None:
        os.execvp(nvcc[0], nvcc)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
