"""One runner, from start to end: the judge's only way to have solution code do anything.

    with Session(solution, "cuda:0") as session:      # starts the process; torch may be imported meanwhile
        session.ready()                               # device, import of the solution
        session.construct(init_args, seed=1)
        session.load(model.state_dict())
        inputs = session.put(args)                    # into memory both processes see
        outputs = session.expect(expected)            # slots shaped like the expected result
        done = session.call(inputs, outputs, seed=7)  # done.device_ms, done.wall_s, done.out; values in outputs

The same `call` serves comparison and timing: the runner does the same work for both. Inputs can be rewritten in place
(`rewrite`: same addresses, new values) and moved (`move`: same values, new addresses). All failures of the runner raise
RunnerFailed, after which `session.alive` says whether it can go on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.judge import failure, structure
from utils.judge.failure import RunnerFailed
from utils.judge.protocol import Closed, ProtocolError, TimedOut, nonce
from utils.judge.replies import check_reply
from utils.judge.sandbox import Policy, Process, import_path
from utils.judge.staging import Stage, prepare
from utils.judge.thrift import Thrift
from utils.problem.solution import Solution

if TYPE_CHECKING:
    import torch

    from utils.judge.clock import Clock
    from utils.judge.handles import Inputs, Outputs
    from utils.judge.memory import Block

# Names a solution may not import: the problem file's usual ones.
_REFERENCE = ("model", "reference")
# Importing may include compiling (load_inline): minutes, where a call takes seconds.
_IMPORT_TIMEOUT = 600.0
# How long a timed call keeps the caller's stream busy while forward queues its launches.
TIMED_DELAY_US = 500.0
# Requests that may be made before this process has touched the device.
_BEFORE_DEVICE = ("hello", "import", "bye")


@dataclass
class Called:
    """What one call gave. `device_ms`: the runner's timer, one value per repetition. `wall_s`: the judge's clock."""

    out: structure.Node
    copied: list[bool]
    device_ms: list[float]
    wall_s: float
    launch_error: str = ""
    ops: list[dict[str, Any]] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    threads: int = 0


class Session:
    """A runner process for `solution` on `device` ("cuda:0", "cpu"). Starting it does not import torch.

    module: the built extension to stage, None where the solution has none. timeout: seconds for one call (and for each
    other step but the import of the solution). Raises CannotTell when the process or its sandbox cannot be had.
    `thrift` may be set where memory is short.
    """

    thrift = Thrift.NONE
    # The runner's times are what is wanted: its caches stay, as memory that forward would have to ask the driver for
    # again would be part of them.
    timed = False
    # Charged with the time that each request's answer took.
    clock: Clock | None = None
    # Seconds for everything after `ready`, and when they end (monotonic); None for no limit.
    budget: float | None = None
    deadline: float | None = None

    def __init__(
        self,
        solution: Solution,
        device: str,
        *,
        module: Path | None = None,
        policy: Policy | None = None,
        timeout: float = 60.0,
    ) -> None:
        from utils.native import library

        self.solution = solution
        self.device_name = device
        self.timeout = timeout
        self.alive = True
        self.facts: dict[str, Any] = {}
        self.left_behind: list[str] = []
        self._policy = policy or Policy()
        self._announce: list[tuple[dict[str, Any], list[list[int]], int]] = []
        self._next = 0
        self._asking = threading.RLock()
        self.stage: Stage = prepare(solution, module, library.path())
        entry = (
            "import sys; sys.path[:] = sys.argv[1].split(':'); from utils.native import early; "
            "early.open_context(sys.argv[2]); from utils.judge import runner; runner.main(int(sys.argv[3]))"
        )
        path = ":".join([str(self.stage.harness), *import_path(self.stage)])
        try:
            self.process = Process(self.stage, self._policy, ["-c", entry, path, device], {})
        except BaseException:
            self.stage.remove()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def device(self) -> torch.device:
        import torch

        return torch.device(self.device_name)

    # ---- life ----------------------------------------------------------------------------------------------------

    def ready(self, before_import: Callable[[], object] | None = None) -> dict[str, Any]:
        """Waits until the runner stands and has imported the solution; its facts (versions, device, flags).

        before_import: waited for before anything of the solution runs: what must not be open to it is read by then.
        """
        with self.clock.part("runner: sandbox") if self.clock else contextlib.nullcontext():
            self.process.settle_in(timeout=60.0)
        request: dict[str, Any] = {"device": self.device_name, "folder": str(self.stage.solution)}
        self.facts = self._ask("hello", request, timeout=max(120.0, self.timeout))
        if before_import is not None:
            before_import()
        request = {"file": self.stage.entry.name, "path": import_path(self.stage), "hidden": list(_REFERENCE)}
        self.facts["after import"] = self._ask("import", request, timeout=max(_IMPORT_TIMEOUT, self.timeout))
        self.stage.unlock()
        if self.budget is not None:
            self.deadline = time.monotonic() + self.budget
        return self.facts

    def close(self) -> list[str]:
        """Ends the runner; names of processes that it left behind. Nothing of it lives on."""
        if not self.alive:
            return self.left_behind
        # Another thread may wait for an answer (`ready` in the background): then there is no time for goodbyes.
        if self._asking.acquire(blocking=False):
            self._asking.release()
            with contextlib.suppress(RunnerFailed):
                self._ask("bye", {}, timeout=5.0)
                self.process.exit_status(5.0)
        if not self.alive:
            return self.left_behind
        # Compiler helpers and the like get a moment to notice that their parent is gone.
        for _ in range(20):
            self.left_behind = self.process.left_behind()
            if not self.left_behind:
                break
            time.sleep(0.05)
        self._end()
        return self.left_behind

    def _end(self) -> None:
        self.alive = False
        self.process.kill()
        self.stage.remove()

    # ---- what the runner is asked to do --------------------------------------------------------------------------

    def construct(self, arguments: Sequence[Any], *, seed: int, train: bool = False) -> dict[str, Any]:
        """ModelNew(*arguments) under `seed`. Returns {"ops": operators dispatched, "state": state_dict entries}."""
        from utils.judge.handles import Inputs

        given = Inputs(self, list(arguments), {}, live=False)
        try:
            return self._ask("construct", {"arguments": given.nodes[0], "seed": seed, "train": train})
        finally:
            given.release()

    def load(self, state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """Loads `state` strictly, in place. Returns {"ops", "differs": {key: how what the module holds differs}}."""
        from utils.judge.handles import Inputs

        given = Inputs(self, [], dict(state), live=False)
        try:
            return self._ask("load", {"state": given.nodes[1]})
        finally:
            given.release()

    def put(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None = None,
        *,
        shift: int = 0,
    ) -> Inputs:
        """Arguments for forward, in memory that both processes map; `shift` bytes off their natural alignment."""
        from utils.judge.handles import Inputs

        inputs = Inputs(self, list(args), dict(kwargs or {}), live=True, shift=shift)
        self._ask("put", {"id": inputs.id, "args": inputs.nodes[0], "kwargs": inputs.nodes[1]})
        return inputs

    def expect(self, tree: structure.Node) -> Outputs:
        """Slots for the tensors of an expected result, described by its tree."""
        from utils.judge.handles import Outputs

        return Outputs(self, tree)

    def call(
        self,
        inputs: Inputs,
        outputs: Outputs,
        *,
        seed: int,
        count: int = 1,
        record: bool = False,
        hold: int | None = None,
        delay_us: float = TIMED_DELAY_US,
        late: bool = True,
        flush: bool = True,
        timeout: float | None = None,
    ) -> Called:
        """`count` calls of forward, each with its outputs copied over those of the one before.

        late: inputs are delivered behind a delay of `delay_us` on the caller's stream, after forward was entered, so
            that work on other streams meets poison. Without it they are in place before the caches are flushed, as
            timing wants, and the delay only keeps the stream busy until forward's launches are queued.
        hold: keep the result under this number, for `again`. record: note the operators that torch dispatches.
        """
        inputs.deliver()
        outputs.poison()
        request = {
            "inputs": inputs.id,
            "deliver": inputs.deliveries(),
            "spans": inputs.spans(),
            "outputs": outputs.nodes,
            "paths": outputs.paths,
            "seed": seed,
            "poison": outputs.poison_seed,
            "count": count,
            "record": record,
            "hold": hold,
            "delay_us": float(delay_us),
            "late": late,
            "flush": flush,
            "frugal": bool(self.thrift) and not self.timed,
        }
        self._settle_judge()
        begun = time.perf_counter()
        reply = self._ask("call", request, timeout=timeout or self.timeout * max(1, count))
        wall = time.perf_counter() - begun
        if len(reply["ms"]) != count:
            raise self._failed(
                RunnerFailed(
                    "protocol",
                    "the solution interfered with the protocol: a call was answered without its times",
                    "call",
                )
            )
        return Called(
            reply["out"],
            reply["copied"],
            reply["ms"],
            wall,
            reply["launch_error"],
            reply["ops"],
            reply["flags"],
            self.process.threads(),
        )

    def again(self, held: int, outputs: Outputs) -> list[bool]:
        """Copies a held result out once more; whether each tensor was copied."""
        outputs.poison()
        return self._ask("again", {"held": held, "outputs": outputs.nodes, "paths": outputs.paths})["copied"]

    def state(self, outputs: Outputs, names: Sequence[str]) -> list[str]:
        """Copies the named entries of the state_dict into `outputs`; names the module does not have."""
        outputs.poison()
        return self._ask("state", {"state": dict(zip(names, outputs.nodes, strict=True))})["missing"]

    def settle(self) -> str:
        """Waits for all work on the runner's device; an unchecked launch error, or empty."""
        return self._ask("settle", {})["launch_error"]

    def drop(self, *, inputs: Sequence[int] = (), held: Sequence[int] = (), arenas: Sequence[int] = ()) -> None:
        """Makes the runner forget; a runner that is gone has forgotten already."""
        if self.alive:
            self._ask("drop", {"inputs": list(inputs), "held": list(held), "arenas": list(arenas)})

    def replace(self, inputs: Inputs) -> None:
        """Makes the runner build new objects for `inputs`."""
        self._ask("put", {"id": inputs.id, "args": inputs.nodes[0], "kwargs": inputs.nodes[1]})

    def forget(self, *blocks: Block, inputs: Sequence[int] = ()) -> None:
        """Gives blocks of memory back on both sides."""
        try:
            self.drop(inputs=inputs, arenas=[block.id for block in blocks])
        finally:
            for block in blocks:
                block.close()

    # ---- how it is asked -----------------------------------------------------------------------------------------

    def announce(self, arena: dict[str, Any], slots: list[list[int]], fd: int) -> None:
        """Queues a block of memory, to be mapped by the runner with the next request."""
        self._announce.append((arena, slots, fd))

    def number(self) -> int:
        self._next += 1
        return self._next

    def _settle_judge(self) -> None:
        """What this process queued on the device has happened before the runner looks."""
        if self.device.type == "cuda":
            import torch

            if self.thrift:
                torch.cuda.empty_cache()
            torch.cuda.synchronize(self.device)

    def _ask(self, op: str, request: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """One request and its answer. Raises RunnerFailed for everything that is not one."""
        with self._asking:
            if not self.alive:
                raise RunnerFailed("protocol", "the solution's process is gone", op)
            with self.clock.part(f"runner: {op}") if self.clock else contextlib.nullcontext():
                return self._exchange(op, request, timeout)

    def _exchange(self, op: str, request: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        timeout = self.timeout if timeout is None else timeout
        if self.deadline is not None and op != "bye":
            timeout = max(0.05, min(timeout, self.deadline - time.monotonic()))
        word = nonce()
        announced, self._announce = self._announce, []
        message = {
            **request,
            "n": word,
            "op": op,
            "new_arenas": [arena for arena, _, _ in announced],
            "slots": [slot for _, slots, _ in announced for slot in slots],
        }
        fds = [fd for _, _, fd in announced]
        channel = self.process.channel
        if op not in _BEFORE_DEVICE:
            self._settle_judge()
        try:
            if not channel.idle():
                raise ProtocolError("bytes came that nobody asked for")
            channel.send(message, fds, timeout)
            reply, sent = channel.receive(timeout)
            if sent:
                raise ProtocolError("file descriptors came that nobody asked for")
            if reply.pop("n", None) != word:
                raise ProtocolError("an answer did not carry the question's nonce")
            if reply.get("ok") is True:
                return check_reply(op, reply)
            error = check_reply("error", reply)["error"]
        except Closed:
            raise self._failed(self._ended(op)) from None
        except TimedOut:
            sentence = f"the solution hangs: {failure.deed(op)} did not end within {timeout:g} s"
            if self.deadline is not None and time.monotonic() >= self.deadline:
                sentence = f"the solution is too slow: all calls together took more than {self.budget:g} s"
            raise self._failed(RunnerFailed("timeout", sentence, op)) from None
        except ProtocolError as reason:
            if self.process.memory_exceeded:
                raise self._failed(self._ended(op)) from None
            sentence = f"the solution interfered with the protocol: {reason}"
            raise self._failed(RunnerFailed("protocol", sentence, op)) from None
        raised = failure.raised(op, error)
        if op == "hello":
            raised = RunnerFailed(
                "harness",
                f"the runner could not start on {self.device_name}: {error['type']}: {error['message'][:600]}",
                op,
            )
        if not raised.alive:
            raise self._failed(raised)
        raised.output = self.process.output.tail(2000)
        raise raised

    def _ended(self, op: str) -> RunnerFailed:
        # A killed process first gives back what it held of the GPU, which takes seconds where many share it.
        status = self.process.exit_status(10.0)
        output = self.process.output.tail(2000)
        if self.process.memory_exceeded:
            limit = (self._policy.memory_limit or 0) / 2**30
            return RunnerFailed(
                "memory", f"the solution used more than {limit:.1f} GiB of memory while {failure.deed(op)}", op, output
            )
        if op == "hello":
            return RunnerFailed(
                "harness",
                f"the runner ended before the solution was imported (status {status}): {output[-600:]}",
                op,
                output,
            )
        return failure.ended(op, status, output)

    def _failed(self, error: RunnerFailed) -> RunnerFailed:
        """Ends the runner and hands the error on, with what the solution printed."""
        error.output = error.output or self.process.output.tail(2000)
        self.left_behind = [name for name in self.process.left_behind() if name]
        self._end()
        error.output = self.process.output.tail(2000) or error.output
        return error
