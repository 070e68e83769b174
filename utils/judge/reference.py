"""The judge's own Model: its weights, its inputs, and the answers it gives.

Lives in the judge's process only. Expected outputs are computed in full precision: TF32 is off for matrix products and
convolutions alike, whatever a problem file sets. The model sees exactly the sequence of calls that the solution sees,
so that hidden state, buffers that change and inputs changed in place come out the same on both sides.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from utils.judge import structure
from utils.judge.seeding import seed_everything
from utils.judge.shortage import is_shortage
from utils.present.outcome import CannotTell
from utils.problem.problem import Problem, failure

# Constructing anew for each draw of weights is the plainest way; beyond this many seconds the elements are shuffled.
_SLOW_CONSTRUCTION = 1.0
_MOST_KEPT = 1 << 30
# Inputs of more bytes than this are drawn on the device; and what has been found out about each problem's.
_LARGE = 1 << 30
_input_bytes: dict[tuple[Problem, bool], int] = {}


class Reference:
    """Model on `device`, constructed under `seed` as the solution is."""

    def __init__(self, problem: Problem, device: torch.device, *, seed: int, train: bool, small: bool) -> None:
        self._problem, self._device, self._train, self._small = problem, device, train, small
        self.init_arguments = drawn(problem, seed, small, init=True)
        begun = time.perf_counter()
        seed_everything(seed)
        self.model = self._made(device)
        self._slow = time.perf_counter() - begun > _SLOW_CONSTRUCTION

    def run(self, args: list[Any], kwargs: Mapping[str, Any], *, seed: int) -> Any:
        """forward under no_grad with every generator seeded. Raises CannotTell when the reference itself fails."""
        seed_everything(seed)
        try:
            with torch.no_grad(), _on_device(self._device):
                return self.model(*args, **kwargs)
        except Exception as error:
            if is_shortage(error):
                raise CannotTell(f"Model.forward ran out of memory: {first_line(error)}") from None
            raise CannotTell(f"Model.forward failed: {failure(error, self._problem.path)}") from error

    def draws_random(self, args: list[Any], kwargs: Mapping[str, Any], *, seed: int) -> tuple[Any, bool]:
        """What `run` returns, and whether forward drew from a generator of torch."""
        seed_everything(seed)
        before = _generator_states(self._device)
        result = self.run(args, kwargs, seed=seed)
        after = _generator_states(self._device)
        return result, any(not torch.equal(one, two) for one, two in zip(before, after, strict=True))

    def state(self) -> dict[str, Any]:
        """The state_dict: the live tensors, not copies."""
        return dict(self.model.state_dict())

    def buffers(self) -> list[str]:
        """Keys of the state_dict that are no parameters."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return [
            name for name, value in self.state().items() if name not in parameters and isinstance(value, torch.Tensor)
        ]

    def kept_state(self) -> dict[str, Any] | None:
        """A copy of the state, or None where it is too large to keep twice."""
        state = self.state()
        if sum(value.nbytes for value in state.values() if isinstance(value, torch.Tensor)) > _MOST_KEPT:
            return None
        return {
            name: value.detach().clone() if isinstance(value, torch.Tensor) else value for name, value in state.items()
        }

    @contextlib.contextmanager
    def as_with(self, state: Mapping[str, Any]) -> Iterator[None]:
        """The model as it was with `state`; its present one comes back afterwards."""
        now = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(state)
        try:
            yield
        finally:
            self.model.load_state_dict(now)

    def redraw(self, seed: int, *, perturb: bool) -> str:
        """New weights in place; how they came about, in words. `perturb` moves what all constructions set alike."""
        with torch.no_grad():
            before = {name: value.detach().clone() for name, value in self._parameters() if value.numel() <= 1 << 20}
            if self._slow:
                self._shuffle(seed)
                how = "elements shuffled"
            else:
                seed_everything(seed)
                other = self._made(torch.device("cpu"))
                self.model.load_state_dict(other.state_dict())
                how = "redrawn"
            if perturb and self._perturb(seed, before):
                how += ", constant ones moved"
        return how

    def double(self, args: list[Any], kwargs: Mapping[str, Any], *, seed: int) -> Any:
        """The answer in fp64: weights and floating inputs converted. Any exception means it cannot be had."""
        exact = copy.deepcopy(self.model).double()
        seed_everything(seed)
        with torch.no_grad(), _on_device(self._device):
            return exact(*widened(args), **{name: widened(value) for name, value in kwargs.items()})

    def _made(self, device: torch.device) -> torch.nn.Module:
        try:
            model = self._problem.Model(*copy.deepcopy(self.init_arguments))
        except Exception as error:
            raise CannotTell(f"Model(*get_init_inputs()) failed: {failure(error, self._problem.path)}") from error
        return model.to(device).train(self._train)

    def _parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self.model.named_parameters()

    def _shuffle(self, seed: int) -> None:
        """Each parameter's elements in another order: as likely a draw as the first for weights drawn independently."""
        generator = torch.Generator(self._device).manual_seed(seed)
        for _, value in self._parameters():
            if value.is_floating_point() and value.numel() > 1:
                step = int(torch.randint(1, value.numel(), (1,), generator=generator, device=self._device))
                flat = value.flatten().roll(step)
                value.copy_(flat.flip(0).view_as(value))

    def _perturb(self, seed: int, before: Mapping[str, torch.Tensor]) -> bool:
        """Moves by up to a tenth what is the same in every construction (zero biases, unit scales, running statistics).

        Whether there was anything of the kind.
        """
        moved = False
        generator = torch.Generator("cpu").manual_seed(seed ^ 0xA5A5)

        def noise(value: torch.Tensor) -> torch.Tensor:
            return (0.2 * torch.rand(value.shape, generator=generator, dtype=torch.float32) - 0.1).to(
                value.device, value.dtype
            )

        for name, value in self._parameters():
            if value.is_floating_point() and name in before and torch.equal(before[name], value):
                value.add_(noise(value) * torch.where(value == 0, torch.ones_like(value), value.abs()))
                moved = True
        for module in self.model.modules():
            if (
                isinstance(module, torch.nn.modules.batchnorm._NormBase)
                and module.running_mean is not None
                and module.running_var is not None
            ):
                module.running_mean.add_(noise(module.running_mean))
                module.running_var.mul_(1 + 2 * noise(module.running_var))
                moved = True
        return moved


def drawn(
    problem: Problem, seed: int, small: bool, *, init: bool = False, device: torch.device | None = None
) -> list[Any]:
    """A draw of get_inputs (or get_init_inputs) under `seed`, on the host.

    device: where large inputs are drawn instead, and lie then, as a processor may take half a minute for them. A
    get_inputs that cannot do that (numbers from elsewhere than torch) draws on the host. Which of the two depends on
    the problem and on the kind of device alone, so that a seed gives the same values in every run.
    """
    if init:
        seed_everything(seed)
        return problem.init_inputs(small)
    if device is not None and device.type == "cuda" and _bytes_of_a_draw(problem, small) > _LARGE:
        seed_everything(seed)
        try:
            with device:
                return list(placed(problem.inputs(small), device))
        except CannotTell:
            pass  # drawn on the host below, where what is wrong with it shows if it is not the device
        finally:
            torch.cuda.empty_cache()
    seed_everything(seed)
    return problem.inputs(small)


def _bytes_of_a_draw(problem: Problem, small: bool) -> int:
    """Bytes of the inputs, from a draw on the meta device, which has no memory; 0 where get_inputs cannot do that."""
    if (problem, small) not in _input_bytes:
        try:
            with torch.device("meta"):
                _input_bytes[problem, small] = storage_bytes(problem.inputs(small))
        except CannotTell:
            _input_bytes[problem, small] = 0
    return _input_bytes[problem, small]


def placed(values: Any, device: torch.device) -> Any:
    """`values` with their tensors on `device`: strides, shared storages and requires_grad as they were, and one tensor
    that occurs twice still one.

    What lies there already, and what is no plain dense tensor, is kept as it is.
    """
    storages: dict[int, torch.Tensor] = {}
    moved: dict[int, torch.Tensor] = {}

    def there(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device == device or tensor.layout is not torch.strided or not tensor.numel():
            return tensor
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in storages:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            storages[storage.data_ptr()] = whole.to(device, copy=True)
        made = torch.empty(0, dtype=tensor.dtype, device=device)
        home = storages[storage.data_ptr()].untyped_storage()
        made.set_(home, tensor.storage_offset(), tensor.shape, tensor.stride())
        return made.requires_grad_(tensor.requires_grad and tensor.is_leaf)

    def one(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in moved:
                moved[id(value)] = there(value)
            return moved[id(value)]
        if isinstance(value, list):
            return [one(item) for item in value]
        if isinstance(value, tuple):
            items = [one(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, dict):
            return {key: one(item) for key, item in value.items()}
        return value

    return one(values)


def storage_bytes(values: Any) -> int:
    """Bytes of the storages behind the tensors of an argument list; shared ones count once."""
    found: dict[int, int] = {}

    def walk(value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            storage = value.untyped_storage()
            found[storage._cdata] = storage.nbytes()  # an address would not do: on the meta device there is none
        elif isinstance(value, (list, tuple)):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            walk(list(value.values()))

    walk(values)
    return sum(found.values())


def describe(value: Any) -> structure.Node:
    """The tree of a reference's result: what the solution's must look like."""

    def leaf(tensor: torch.Tensor) -> structure.Node:
        node: structure.Node = {
            "k": "tensor",
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "size": list(tensor.shape),
        }
        if tensor.layout is not torch.strided:
            raise CannotTell(f"Model returns a tensor with layout {tensor.layout}; only dense tensors can be compared")
        node.update(stride=list(tensor.stride()), device=str(tensor.device))
        return node

    tree = structure.check(structure.encode(value, leaf))
    for path, part in structure.leaves(tree):
        if part["k"] == "other":
            raise CannotTell(
                f"Model returns {structure.show(part)} ({path}), which cannot be compared; return tensors, numbers, "
                "strings, None, or lists, tuples and dicts of them"
            )
    return tree


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a result in the order of its tree."""
    found: list[torch.Tensor] = []

    def leaf(tensor: torch.Tensor) -> structure.Node:
        found.append(tensor.detach())
        return {"k": "none"}

    structure.encode(value, leaf)
    return found


def widened(value: Any) -> Any:
    """`value` with every floating tensor as fp64 and every complex one as complex128."""
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            return value.to(torch.complex128)
        return value.double() if value.is_floating_point() else value
    if isinstance(value, list):
        return [widened(item) for item in value]
    if isinstance(value, tuple):
        return (
            type(value)(*(widened(item) for item in value))
            if hasattr(value, "_fields")
            else tuple(widened(item) for item in value)
        )
    if isinstance(value, Mapping):
        return {key: widened(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Matrix products and convolutions in fp32 proper, deterministic settings otherwise as torch ships them."""
    backends = torch.backends
    before = (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32)
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


@contextlib.contextmanager
def tensor_float_32() -> Iterator[None]:
    """The same with TF32 allowed in both: the precision class next below."""
    backends = torch.backends
    before = (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32)
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _on_device(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def _generator_states(device: torch.device) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states
