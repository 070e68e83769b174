"""The runner: imports the solution and does what the judge asks, in a process that holds no answer.

Untrusted from the moment the solution is imported: the solution shares this interpreter and may change anything in it.
Nothing here therefore decides anything. The runner calls forward, copies what it returned into memory the judge owns,
and describes it; the judge compares. What is captured at import (functions of torch, say) is only meant to keep honest
accidents from confusing it.

Every call is made in the same way, whether the judge will compare its result, use its time, or both: inputs are
delivered late, on the caller's stream, into memory that held a poison pattern; blocks of the outputs' sizes are
poisoned and freed, so that fresh memory holds no old answer; the L2 cache is flushed; then forward runs between two
events on that stream, a stream of its own that does not wait for the default stream.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.machinery
import importlib.util
import os
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from utils.judge import structure
from utils.judge.protocol import Channel, Closed
from utils.judge.recorder import Recorder
from utils.judge.seeding import seed_everything
from utils.native import library
from utils.native.arena import Arena
from utils.native.poison import poison
from utils.native.timer import DeviceTimer

_Tensor, _Parameter, _Module = torch.Tensor, torch.nn.Parameter, torch.nn.Module
_no_grad = torch.no_grad
_load_state_dict, _state_dict, _train, _to = _Module.load_state_dict, _Module.state_dict, _Module.train, _Module.to
_MOST_TRACE = 6000


class Refused(Exception):
    """The solution failed; `reply` describes it for the judge."""

    def __init__(self, where: str, error: BaseException, folder: str) -> None:
        super().__init__(where)
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith(folder)]
        named = [f"{os.path.relpath(frame.filename, folder)}:{frame.lineno}" for frame in own]
        try:
            message = str(error)
        except BaseException:
            message = "(its message cannot be shown)"
        text = "".join(traceback.format_list(own or frames[-3:]))
        self.reply = {
            "where": where,
            "type": type(error).__name__[:200],
            "message": message[:4000],
            "line": named[-1][:300] if named else "",
            "trace": text[-_MOST_TRACE:].replace(folder, ""),
        }


class Runner:
    """State of one runner and the handlers of the judge's requests, one method per operation."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._arenas: dict[int, Arena] = {}
        self._slots: dict[int, tuple[int, int, int]] = {}
        self._class: Any = None
        self._model: Any = None
        self._held: dict[int, Any] = {}
        self._inputs: dict[int, tuple[Any, Any, Any]] = {}
        self._ops: list[dict[str, Any]] = []

    def serve(self) -> None:
        """Answers requests until the judge says goodbye or goes away."""
        while True:
            try:
                request, fds = self._channel.receive()
            except Closed:
                return
            reply: dict[str, Any] = {"n": request["n"], "ok": True}
            try:
                self._attach(request, fds)
                reply.update(getattr(self, "do_" + request["op"])(request))
            except Refused as refused:
                reply.update(ok=False, error=refused.reply)
            except Exception as error:
                reply.update(ok=False, error=Refused("harness", error, getattr(self, "_folder", "/")).reply)
            self._channel.send(reply)
            if request["op"] == "bye":
                return

    # ---- getting ready -------------------------------------------------------------------------------------------

    def do_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Settles on the device. `device` is a torch device string."""
        self._device = torch.device(request["device"])
        self._folder = request["folder"]
        self._cuda = self._device.type == "cuda"
        facts: dict[str, Any] = {"torch": torch.__version__, "flags": _flags(), "device_name": "", "capability": None}
        if self._cuda:
            torch.cuda.set_device(self._device)
            self._stream = torch.cuda.Stream(self._device)
            facts["device_name"] = torch.cuda.get_device_name(self._device)
            facts["capability"] = list(torch.cuda.get_device_capability(self._device))
        # On the caller's stream whatever stream forward leaves behind as the current one.
        self._timer = DeviceTimer(self._device, self._stream.cuda_stream if self._cuda else None)
        return facts

    def do_import(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs the solution's file, with none of the harness's modules left to be found by name."""
        for name in [name for name in sys.modules if name == "utils" or name.startswith("utils.")]:
            del sys.modules[name]
        sys.path[:] = [*request["path"], self._folder]
        sys.meta_path.insert(0, _NoReference(request["hidden"]))
        sys.argv[:] = [request["file"]]
        path = Path(self._folder) / request["file"]
        with self._solution("import"):
            _load_extension(Path(self._folder))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            self._class = getattr(module, "ModelNew", None)
            if self._class is None:
                raise AttributeError(f"{path.name} defines no class named ModelNew")
            if not (isinstance(self._class, type) and issubclass(self._class, _Module)):
                raise TypeError(f"ModelNew in {path.name} is not a subclass of torch.nn.Module")
        build = getattr(sys.modules.get("cuda_extension"), "__build__", None)
        return {"flags": _flags(), "build": {str(key): str(value)[:500] for key, value in dict(build or {}).items()}}

    def do_construct(self, request: dict[str, Any]) -> dict[str, Any]:
        """ModelNew(*arguments) with the generators seeded, moved to the device, in train or eval mode."""
        self._model = None
        self._held.clear()
        with self._solution("construct"):
            arguments = self._values(request["arguments"], clone=True)
            seed_everything(request["seed"])
            recorder = Recorder("init", self._folder)
            with recorder:
                model = self._class(*arguments)
            _to(model, self._device)
            _train(model, request["train"])
            self._synchronize()
            self._model = model
            entries = _state_dict(model)
        self._ops = recorder.ops()
        described = {}
        for name, value in list(entries.items())[: structure.MAX_LEAVES]:
            described[str(name)] = (
                self._describe(value) if isinstance(value, _Tensor) else {"k": "other", "type": type(value).__name__}
            )
        return {"ops": self._take_ops(), "state": described}

    def do_load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Loads the judge's state_dict into the model, in place, by the base class's own method."""
        state = {name: structure.decode(node, self._tensor) for name, node in request["state"].items()}
        with self._solution("load_state_dict"), _no_grad():
            recorder = Recorder("load_state_dict", self._folder)
            with recorder:
                _load_state_dict(self._model, state, strict=True)
            self._synchronize()
            held = _state_dict(self._model)
            differs = {}
            for name, value in state.items():
                mine = held.get(name)
                if not isinstance(value, _Tensor):
                    continue
                if not isinstance(mine, _Tensor) or mine.shape != value.shape:
                    differs[name] = "is not held by the module"
                elif mine.dtype != value.dtype:
                    differs[name] = f"is held as {str(mine.dtype).removeprefix('torch.')}"
                elif not _same_bits(mine.detach(), value):
                    differs[name] = "does not hold the loaded values"
        self._ops = recorder.ops()
        return {"ops": self._take_ops(), "differs": differs}

    def do_put(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes the objects that forward will be called with; `id` names them. Their memory belongs to the judge."""
        leaves: list[Any] = []

        def leaf(node: dict[str, Any]) -> Any:
            tensor = self._tensor(node)
            leaves.append(tensor.detach())
            return tensor

        arguments = [structure.decode(node, leaf) for node in request["args"]]
        keywords = {name: structure.decode(node, leaf) for name, node in request["kwargs"].items()}
        self._inputs[request["id"]] = (arguments, keywords, leaves)
        return {}

    def do_drop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forgets inputs, held results, slots and arenas by number."""
        for number in request.get("inputs", []):
            self._inputs.pop(number, None)
        for number in request.get("held", []):
            self._held.pop(number, None)
        for number in request.get("arenas", []):
            self._slots = {slot: place for slot, place in self._slots.items() if place[0] != number}
            arena = self._arenas.pop(number, None)
            if arena is not None:
                self._synchronize()
                arena.close()
        return {}

    # ---- the call ------------------------------------------------------------------------------------------------

    def do_call(self, request: dict[str, Any]) -> dict[str, Any]:
        """`count` calls of forward on the same inputs, each timed, each with its outputs copied to their slots."""
        arguments, keywords, leaves = self._inputs[request["inputs"]]
        deliveries = [(self._bytes(source), self._bytes(live)) for source, live in request["deliver"]]
        targets = [(node["dtype"], list(node["size"]), self._tensor(node)) for node in request["outputs"]]
        spans = [(self._bytes(slot), name) for slot, name in request["spans"]]
        times: list[float] = []
        launch_error = ""
        with self._on_stream():
            for _ in range(request["count"]):
                self._prepare(request, leaves, deliveries, targets)
                recorder = Recorder("forward", self._folder) if request["record"] else contextlib.nullcontext()
                with self._solution("forward"):
                    with _no_grad(), recorder:
                        mark = self._timer.start()
                        result = self._model(*arguments, **keywords)
                        self._timer.stop(mark)
                    launch_error = launch_error or self._launch_error()
                    with self._on_stream():
                        tree, copied = self._copy_out(result, request["paths"], targets, spans)
                with self._solution("after forward"):
                    self._timer.synchronize_stream()
                    times.append(self._timer.elapsed_ms(mark))
        if request["record"]:
            self._ops = recorder.ops()  # type: ignore[union-attr]
        if request["hold"] is not None:
            self._held[request["hold"]] = result
        del result
        if request["frugal"] and self._cuda:
            torch.cuda.empty_cache()
        return {
            "out": tree,
            "ms": times,
            "copied": copied,
            "launch_error": launch_error,
            "ops": self._take_ops(),
            "flags": _flags(),
        }

    def do_again(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copies a held result out once more: it must not have changed since it was returned."""
        targets = [(node["dtype"], list(node["size"]), self._tensor(node)) for node in request["outputs"]]
        with self._on_stream(), self._solution("reading an earlier result"):
            tree, copied = self._copy_out(self._held[request["held"]], request["paths"], targets, [])
            self._timer.synchronize_stream()
        return {"out": tree, "copied": copied}

    def do_state(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copies entries of the state_dict out."""
        missing = []
        with self._on_stream(), self._solution("state_dict"), _no_grad():
            entries = _state_dict(self._model)
            for name, node in request["state"].items():
                value, target = entries.get(name), self._tensor(node)
                if isinstance(value, _Tensor) and value.shape == target.shape:
                    target.copy_(value.detach())
                else:
                    missing.append(name)
            self._timer.synchronize_stream()
        return {"missing": missing}

    def do_settle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Waits for everything on the device, whoever queued it, so that late faults show."""
        with self._solution("settle"):
            self._synchronize()
        return {"launch_error": self._launch_error(), "flags": _flags()}

    def do_bye(self, request: dict[str, Any]) -> dict[str, Any]:
        return {}

    # ---- parts of a call -----------------------------------------------------------------------------------------

    def _prepare(self, request: dict[str, Any], leaves: list[Any], deliveries: list[Any], targets: list[Any]) -> None:
        """Everything before forward: poison where results and inputs will be, caches flushed, inputs on their way.

        `late` inputs are still being delivered when forward is entered: work queued on any other stream than the
        caller's sees poison. Otherwise they are there before the flush, and the delay only keeps the stream busy.
        """
        for tensor in leaves if deliveries else ():
            poison(tensor, request["poison"])
        for _, _, target in targets:
            poison(target, request["poison"])
        # Freed again at once: an output that forward allocates and does not write is made of this memory.
        shapes = [] if request["frugal"] else targets
        blocks = [torch.empty(size, dtype=target.dtype, device=self._device) for _, size, target in shapes]
        for block in blocks:
            poison(block, request["poison"])
        del blocks[:]
        if not request["late"]:
            self._deliver(deliveries)
        if request["flush"]:
            self._timer.flush_l2()
        seed_everything(request["seed"])
        if self._cuda:
            self._timer.delay_us(request["delay_us"])
        if request["late"]:
            self._deliver(deliveries)

    def _deliver(self, deliveries: list[Any]) -> None:
        for source, live in deliveries:
            live.copy_(source)

    def _launch_error(self) -> str:
        """A launch that was refused and that nobody asked about; forgotten afterwards, so that it is told only once."""
        errors = self._timer.pending_errors()
        if errors:
            for runtime in _cuda_runtimes():
                runtime.cudaGetLastError()
        return "; ".join(errors)[:300]

    def _copy_out(self, result: Any, paths: list[str], targets: list[Any], spans: list[Any]) -> tuple[Any, list[bool]]:
        """The description of `result`, and for each expected tensor whether it was copied into its slot.

        Only tensors of the expected dtype and size are copied; what differs is for the judge to say.
        """
        found: list[Any] = []

        def leaf(value: Any) -> dict[str, Any]:
            found.append(value)
            node = self._describe(value)
            if "odd" not in node and value.numel():
                begin = value.untyped_storage().data_ptr()
                end = begin + value.untyped_storage().nbytes()
                for place, name in spans:
                    if begin < place.data_ptr() + place.numel() and place.data_ptr() < end:
                        node["alias"] = name
            return node

        tree = structure.encode(result, leaf)
        by_path = dict(zip((path for path, _ in structure.tensors(tree)), found, strict=True))
        copied = []
        with _no_grad():
            for path, (dtype, size, target) in zip(paths, targets, strict=True):
                node = self._describe(by_path[path]) if path in by_path else {"odd": ""}
                fits = "odd" not in node and node["dtype"] == dtype and node["size"] == size
                if fits:
                    target.copy_(by_path[path].detach())
                copied.append(fits)
        return tree, copied

    def _describe(self, value: Any) -> dict[str, Any]:
        """A tensor's node; "odd" says why it is not a plain tensor with memory of its own."""
        kind = type(value)
        node: dict[str, Any] = {"k": "tensor", "dtype": "unknown", "size": [], "stride": [], "device": ""}
        if kind is not _Tensor and kind is not _Parameter:
            node["odd"] = (
                f"is a {kind.__module__}.{kind.__qualname__}, not a torch.Tensor: it may compute when it is read"[
                    : structure.MAX_TEXT
                ]
            )
            return node
        if value.layout is not torch.strided:
            node["odd"] = f"has the layout {value.layout}; only dense tensors can be compared"
            return node
        node.update(
            dtype=str(value.dtype).removeprefix("torch."),
            size=list(value.shape),
            stride=list(value.stride()),
            device=str(value.device),
            parameter=kind is _Parameter,
            grad=bool(value.requires_grad),
        )
        if node["dtype"] not in structure.DTYPES:
            node["odd"] = f"has the dtype {value.dtype}, which cannot be compared"
        elif value.is_meta or (value.numel() and value.untyped_storage().data_ptr() == 0):
            node["odd"] = "has no memory behind it"
        return node

    def _synchronize(self) -> None:
        if self._cuda:
            torch.cuda.synchronize(self._device)

    def _on_stream(self) -> Any:
        return torch.cuda.stream(self._stream) if self._cuda else contextlib.nullcontext()

    @contextlib.contextmanager
    def _solution(self, where: str) -> Any:
        """Turns whatever the solution raises, SystemExit included, into an answer."""
        try:
            yield
        except Refused:
            raise
        except BaseException as error:
            raise Refused(where, error, self._folder) from error

    # ---- memory of the judge -------------------------------------------------------------------------------------

    def _attach(self, request: dict[str, Any], fds: list[int]) -> None:
        """Maps arenas that came with the request and learns its slots: number -> (arena, byte offset, bytes)."""
        for item, fd in zip(request["new_arenas"], fds, strict=True):
            self._arenas[item["id"]] = Arena.attach(fd, item["nbytes"], self._device)
            os.close(fd)
        for number, arena, offset, nbytes in request["slots"]:
            self._slots[number] = (arena, offset, nbytes)

    def _bytes(self, slot: int) -> Any:
        arena, offset, nbytes = self._slots[slot]
        return self._arenas[arena].tensor(offset, [nbytes], [1], torch.uint8)

    def _tensor(self, node: dict[str, Any]) -> Any:
        dtype = getattr(torch, node["dtype"])
        if 0 in node["size"]:
            return torch.empty(node["size"], dtype=dtype, device=self._device)
        arena, offset, _ = self._slots[node["slot"]]
        tensor = self._arenas[arena].tensor(offset + node["offset"], node["size"], node["stride"], dtype)
        return tensor.requires_grad_() if node.get("grad") else tensor

    def _values(self, nodes: list[dict[str, Any]], clone: bool) -> list[Any]:
        """Values on the CPU, apart from the judge's memory, as a constructor gets them."""
        return [structure.decode(node, lambda item: self._tensor(item).detach().clone().cpu()) for node in nodes]

    def _take_ops(self) -> list[dict[str, Any]]:
        ops, self._ops = self._ops, []
        return ops


class _NoReference:
    """Says why the problem file cannot be imported, where Python would only say that it is not found."""

    def __init__(self, names: list[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(
                f"the reference ({name}.py) is not available to a solution: ModelNew must not import or call Model",
                name=name,
            )


def _load_extension(folder: Path) -> None:
    """Loads the staged module from its exact path: no installed module of the same name can take its place."""
    for path in folder.glob("cuda_extension*.so"):
        loader = importlib.machinery.ExtensionFileLoader("cuda_extension", str(path))
        spec = importlib.util.spec_from_loader("cuda_extension", loader, origin=str(path))
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules["cuda_extension"] = module


def _cuda_runtimes() -> list[Any]:
    """The CUDA runtime libraries that this process has loaded."""
    with open("/proc/self/maps") as maps:
        places = {line.split()[-1] for line in maps if "libcudart" in line}
    return [ctypes.CDLL(place) for place in sorted(places)]


def _same_bits(one: Any, two: Any) -> bool:
    one, two = one.to(two.device).contiguous(), two.contiguous()
    return bool(torch.equal(one.view(-1).view(torch.uint8), two.view(-1).view(torch.uint8))) if one.numel() else True


def _flags() -> dict[str, str]:
    """Global settings of torch that change what other code computes."""
    backends = torch.backends
    flags = {
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": backends.cuda.matmul.allow_tf32,
        "cuda.matmul.fp16 reduced precision": backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        "cuda.matmul.bf16 reduced precision": backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        "cudnn.enabled": backends.cudnn.enabled,
        "cudnn.benchmark": backends.cudnn.benchmark,
        "cudnn.deterministic": backends.cudnn.deterministic,
        "cudnn.allow_tf32": backends.cudnn.allow_tf32,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
    }
    return {name: str(value) for name, value in flags.items()}


def main(fd: int) -> None:
    """Serves the judge on the socket `fd` until told to stop, and ends the process."""
    library.load()
    Runner(Channel(socket.socket(fileno=fd))).serve()
    # Helper processes are told to end and what was printed is written; to take the interpreter and torch apart as well
    # would have the judge wait for another second.
    atexit._run_exitfuncs()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(0)
