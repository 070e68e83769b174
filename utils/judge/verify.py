"""A whole verification: everything from a solution's files to a verdict."""

from __future__ import annotations

import gc
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.judge.clock import Clock
from utils.judge.devices import Place, choose
from utils.judge.extension import Extension, check_covers, find_extension, simulated_extension
from utils.judge.failure import RunnerFailed
from utils.judge.processes import control_group_limits
from utils.judge.reading import Reading
from utils.judge.sandbox import Policy
from utils.judge.session import Session
from utils.judge.thrift import Thrift
from utils.judge.untouched import Untouched
from utils.judge.verdict import Findings, reasons
from utils.native.early import open_context
from utils.present.outcome import CannotTell
from utils.problem.solution import Solution, find_solution
from utils.problem.workspace import find_workspace

if TYPE_CHECKING:
    from utils.judge.study import Study
    from utils.judge.trials import Trials
    from utils.problem.problem import Problem


# Seconds that all calls together may take, at least.
_WHOLE = 900.0
# Share of the device's memory from which the judge's own copies may be what a solution lacked.
_LARGE = 0.2


@dataclass(frozen=True)
class Request:
    """The command line. `seed` None draws one from the operating system; `memory_limit` is in bytes."""

    workspace: str | None = None
    problem: str | None = None
    solution: str | None = None
    device: str | None = None
    atol: float = 1e-2
    rtol: float = 1e-2
    trials: int = 5
    seed: int | None = None
    train: bool = False
    timeout: float = 60.0
    memory_limit: int | None = None
    rules: str = "strict"
    sandbox: bool = True
    require_sandbox: bool = False


@dataclass
class Verification:
    """What was found. `verdict` is PASS or FAIL; everything else is how it came about."""

    verdict: str
    reasons: list[str]
    findings: Findings
    place: Place
    solution: Solution
    problem: Path
    seed: int
    trials: Trials | None = None
    study: Study | None = None
    precision: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    sandbox: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    output: str = ""
    traces: list[str] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)

    @property
    def simulated(self) -> bool:
        return self.place.simulated

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"


def verify(
    request: Request,
    progress: Callable[[str], None] = lambda text: None,
    *,
    thrift: Thrift = Thrift.NONE,
    meanwhile: Callable[[Problem], None] = lambda problem: None,
    clock: Clock | None = None,
) -> Verification:
    """Runs the whole of it. Raises CannotTell or No where no verdict can be computed.

    thrift: do without checks that need memory; turned on by itself where memory would not do otherwise.
    meanwhile: called once, as soon as the problem is loaded and while the runner starts: what else there is to do.
    clock: goes on with one that runs already.
    """
    clock = clock or Clock()
    workspace = find_workspace(request.workspace) if request.workspace or not request.solution else None
    solution = find_solution(workspace, request.solution)
    problem_path = _problem_path(request, solution)
    seed = request.seed if request.seed is not None else secrets.randbits(62)
    place = choose(request.device, solution)
    done = Verification("FAIL", [], Findings(), place, solution, problem_path, seed, clock=clock)
    with Reading(solution, problem_path) as rules:
        again = _run(request, done, rules, progress, thrift, meanwhile)
    if again is not None:
        # Once more, with less held at a time: what ran out may have been the judge's share.
        from utils.judge.shortage import give_back

        del done
        gc.collect()
        give_back()
        return verify(replace(request, seed=seed), progress, thrift=again, clock=clock)
    clock.lap("end")
    return done


def _run(
    request: Request,
    done: Verification,
    rules: Reading,
    progress: Callable[[str], None],
    thrift: Thrift,
    meanwhile: Callable[[Problem], None],
) -> Thrift | None:
    """Fills `done`, up to the verdict. A thrift where it has to be done again with that, and `done` not to be used."""
    solution, problem_path, place, findings, clock = done.solution, done.problem, done.place, done.findings, done.clock
    extension = simulated_extension(solution) if place.simulated else find_extension(solution)
    policy = Policy(
        sandbox=request.sandbox,
        require=request.require_sandbox,
        memory_limit=request.memory_limit or _default_memory_limit(),
        hide=(problem_path.parent,),
    )
    progress("starting the runner")

    def start() -> Session:
        module = extension.path if extension else None
        made = Session(solution, place.device, module=module, policy=policy, timeout=request.timeout)
        made.clock = clock
        return made

    session = start()
    session.budget = max(_WHOLE, 20 * request.timeout)
    # The solution runs once everything is read that it could write to where the sandbox is lacking.
    loaded = threading.Event()

    def all_read() -> None:
        loaded.wait()
        rules.done()

    ready = _InBackground(lambda: session.ready(all_read))
    again: Thrift | None = None
    open_context(place.device)
    try:
        with session:
            untouched = Untouched(problem_path)
            clock.lap("start")
            _judge(request, session, start, ready, loaded, problem_path, extension, done, progress, thrift, meanwhile)
            if session.alive:
                session.close()
            for name in sorted(set(session.left_behind)):
                findings.fail("children", f"the solution left a process running ({name})")
    except RunnerFailed as failed:
        if _for_want_of_memory(failed, done, session):
            again = session.thrift.next
        elif failed.kind == "harness":
            raise CannotTell(
                f"{failed.sentence}"
                + (f"\n{failed.output}" if failed.output and failed.output not in failed.sentence else "")
            ) from None
        _say_failed(failed, done)
        for name in sorted(set(session.left_behind)):
            findings.warn("children", f"a process of the solution was still running ({name})")
    except Exception as error:
        from utils.judge.shortage import is_shortage

        if not is_shortage(error):
            raise
        # It may have come before the study had settled how thrifty to be.
        used = max(thrift, session.thrift)
        if used is Thrift.HOST:
            if isinstance(error, CannotTell):
                raise
            raise CannotTell(
                f"the judge itself ran out of memory ({str(error).splitlines()[0][:200]}); give the problem smaller "
                "inputs"
            ) from None
        again = used.next
    finally:
        session.close()
        loaded.set()
        done.output = session.process.output.text()
        done.sandbox = {
            "layers": session.process.layers.had,
            "lacking": session.process.layers.lacking,
            "memory_peak": session.process.memory_peak,
        }
    untouched.settle(session.process.layers, lambda sentence: findings.warn("changed", sentence))
    if again is not None:
        return again
    for sentence in session.process.layers.sentences():
        findings.warn("sandbox", sentence)
    for note in session.stage.notes:
        findings.warn("import", note)
    done.facts = session.facts
    progress("reading the sources")
    _rules(request, session, done, rules.result())
    done.digests = {**untouched.digests, **session.stage.digests}
    done.reasons = reasons(findings.all)
    done.verdict = "FAIL" if findings.failed else "PASS"
    return None


def _judge(
    request: Request,
    session: Session,
    start: Callable[[], Session],
    ready: _InBackground,
    loaded: threading.Event,
    path: Path,
    extension: Extension | None,
    done: Verification,
    progress: Callable[[str], None],
    thrift: Thrift,
    meanwhile: Callable[[Problem], None],
) -> None:
    """Everything with the runner alive."""
    import torch

    from utils.judge import probes
    from utils.judge.study import study_problem
    from utils.judge.trials import Settings, Trials
    from utils.problem.problem import load_problem

    place, findings, clock = done.place, done.findings, done.clock
    clock.lap("torch")
    if place.device != "cpu":
        if not torch.cuda.is_available():
            raise CannotTell(
                f"this PyTorch ({torch.__version__}) cannot use the GPU; install a build with CUDA that fits the driver"
            )
        torch.cuda.set_device(torch.device(place.device))
        check_covers(extension, torch.cuda.get_device_capability(), torch.cuda.get_device_name())
    clock.lap("device")
    before = _flags(torch)
    problem = load_problem(path)
    loaded.set()
    for name in _restore(torch, before):
        findings.note("flags", f"{path.name} sets {name} when it is imported; it was put back")
    settings = Settings(request.trials, request.atol, request.rtol, done.seed, request.train, place.small)
    clock.lap("problem")
    meanwhile(problem)
    clock.lap("meanwhile")
    progress("studying the problem")
    study = done.study = study_problem(
        problem, torch.device(place.device), settings, findings, thrift=thrift, clock=clock
    )
    session.thrift = study.thrift
    if study.thrift:
        done.precision = {"class": "unknown", "why": study.not_done}
    clock.lap("study")
    progress("importing the solution")
    ready.result()
    clock.lap("import")
    after = session.facts["after import"]["flags"]
    for name, value in after.items():
        if session.facts["flags"].get(name) != value:
            findings.note("flags", f"importing the solution sets {name} to {value} (in its own process only)")
    trials = Trials(
        session,
        problem,
        settings,
        study.tolerances,
        findings,
        perturb=study.perturb,
        random_=study.draws_random,
        on_first=lambda given: done.precision.update(study.precision_of(given)),
        progress=progress,
        draws=study.draws,
        clock=clock,
    )
    done.trials = trials
    trials.run()
    clock.lap("trials")
    if not findings.failed:
        progress("probing")
        done.probes = probes.run(trials, session, findings, start)
    clock.lap("probes")


def _for_want_of_memory(failed: RunnerFailed, done: Verification, session: Session) -> bool:
    """Whether the runner found no memory because of what the judge holds.

    The runner's word is not enough: only where that is a good part of all memory.
    """
    from utils.judge.shortage import is_shortage, kept_share

    told = failed.kind == "out_of_memory" or (failed.kind == "harness" and is_shortage(failed))
    if not told or session.thrift is Thrift.HOST or done.study is None:
        return False
    return max(done.study.share, kept_share(session.device)) > _LARGE


def _say_failed(failed: RunnerFailed, done: Verification) -> None:
    """A lost or raising runner as a finding, with the call it happened in."""
    trial, call = failed.details.pop("trial", None), failed.details.pop("call", None)
    done.findings.fail(failed.kind, failed.sentence, trial=trial, call=call, details=failed.details)
    if failed.details.get("trace"):
        done.traces.append(failed.details["trace"])


def _rules(request: Request, session: Session, done: Verification, static: list[Any]) -> None:
    """Breaches of the rules, from reading, from the operators that ran, and from what load_inline built."""
    from utils import rules

    violations = list(static)
    if done.solution.kind == "load_inline":
        from utils.rules.elf import read_shared_object
        from utils.rules.object_symbols import object_violations

        cache = session.stage.cache.resolve()
        for module in sorted(cache.glob("torch_extensions/*/*.so")):
            if not module.is_file() or not module.resolve().is_relative_to(cache):
                continue  # a link to elsewhere, or something that is no file
            violations += object_violations(read_shared_object(module))
    # The simulator's stand-ins for cuBLAS and cuDNN are ATen: what it dispatches is no evidence against the solution.
    if done.trials is not None and not done.simulated:
        violations += rules.dispatch_violations(list(done.trials.ops.values()), done.solution)
    failures, warnings = rules.split(violations, request.rules)
    for violation, level in [*((item, "fail") for item in failures), *((item, "warn") for item in warnings)]:
        where = f"{violation.where}: " if violation.where else ""
        sentence = f"{where}{violation.sentence} [{violation.rule}]; {violation.mend}"
        done.findings.add(level, "rule", sentence, details=violation.as_dict())


def _problem_path(request: Request, solution: Solution) -> Path:
    if request.problem:
        path = Path(request.problem).expanduser().resolve()
    elif request.workspace or not request.solution:
        path = find_workspace(request.workspace).model
    else:
        path = solution.path.parent / "model.py"
    if not path.is_file():
        raise CannotTell(f"there is no problem at {path}; give --problem FILE, or write model.py there")
    return path


def _default_memory_limit() -> int:
    """Nine tenths of the memory this process may have: enough for any honest solution, and the machine stays alive."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min([machine, *control_group_limits()]) * 0.9)


def _flags(torch: Any) -> dict[str, Any]:
    backends = torch.backends
    return {
        "the default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "torch.backends.cuda.matmul.allow_tf32": backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": backends.cudnn.allow_tf32,
        "torch.backends.cudnn.benchmark": backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": backends.cudnn.deterministic,
        "torch.backends.cudnn.enabled": backends.cudnn.enabled,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def _restore(torch: Any, before: dict[str, Any]) -> list[str]:
    """Puts torch's global settings back; names of those that had changed. The default dtype is the problem's to set."""
    changed = [name for name, value in _flags(torch).items() if before[name] != value and name != "the default dtype"]
    if not changed:
        return []
    backends = torch.backends
    torch.set_grad_enabled(before["grad mode"])
    backends.cuda.matmul.allow_tf32 = before["torch.backends.cuda.matmul.allow_tf32"]
    backends.cudnn.allow_tf32 = before["torch.backends.cudnn.allow_tf32"]
    backends.cudnn.benchmark = before["torch.backends.cudnn.benchmark"]
    backends.cudnn.deterministic = before["torch.backends.cudnn.deterministic"]
    backends.cudnn.enabled = before["torch.backends.cudnn.enabled"]
    # Not without need: it imports the compiler, which takes seconds.
    if "deterministic algorithms" in changed:
        torch.use_deterministic_algorithms(before["deterministic algorithms"])
    return changed


class _InBackground:
    """Work that runs beside the trials; `result` waits for it and raises what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def result(self) -> Any:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._value = work()
        except BaseException as error:
            self._error = error
