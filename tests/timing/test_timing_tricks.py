"""Solutions that try to look faster than they are, on the GPU, each with what must become of it.

Refused means one of three: a timed call's output is wrong, the judge's wall clock disagrees, or the process fails. The
tricks that change nothing (a persisting L2, a sleep before the work) must simply not be called FASTER. Honest
neighbours of each trick must pass, and be the SAME.
"""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import torch

from utils.judge.comparing import Tolerance
from utils.judge.sandbox import Policy
from utils.problem.problem import load_problem
from utils.problem.solution import find_solution
from utils.timing import rounds, statistics, witness
from utils.timing.baselines import BaselineSession
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, NotSame, SolutionSide, Stand, Trial
from utils.timing.variants import Variant

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

# About 0.1 ms on an H200: 64 MB through an L2 of 50.
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + 1


def get_inputs():
    return [torch.randn(1 << 24)]


def get_init_inputs():
    return []
"""

HEAD = """
import ctypes, gc, threading, time
import torch
import torch.nn as nn


class ModelNew(nn.Module):
"""

REFUSED = {
    "work on another stream": """
    stream = None

    def forward(self, x):
        self.stream = self.stream or torch.cuda.Stream()
        out = torch.empty_like(x)
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(4_000_000)
            torch.tanh(x, out=out).add_(1)
        return out
""",
    "work in a thread": """
    def forward(self, x):
        out = torch.empty_like(x)

        def work():
            time.sleep(0.003)
            with torch.no_grad():
                torch.tanh(x, out=out).add_(1)

        threading.Thread(target=work, daemon=True).start()
        return out
""",
    "a lazy tensor": """
    class Lazy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            plain = [a.as_subclass(torch.Tensor) if isinstance(a, torch.Tensor) else a for a in args]
            return function(*plain, **(kwargs or {}))

    def forward(self, x):
        return torch.empty_like(x).as_subclass(self.Lazy)
""",
    "an answer kept by address": """
    kept = {}

    def forward(self, x):
        if x.data_ptr() not in self.kept:
            self.kept[x.data_ptr()] = torch.tanh(x) + 1
        return self.kept[x.data_ptr()]
""",
    "a graph replayed on old inputs": """
    graph = None

    def forward(self, x):
        if self.graph is None:
            self.x = x.clone()
            torch.tanh(self.x) + 1
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
                self.out = torch.tanh(self.x) + 1
        self.graph.replay()
        return self.out
""",
    "a patched timer": """
    def forward(self, x):
        for thing in gc.get_objects():
            if type(thing).__name__ == "DeviceTimer":
                type(thing).elapsed_ms = lambda self, mark: 0.001
        torch.cuda._sleep(4_000_000)
        return torch.tanh(x) + 1
""",
    "no work after the first calls": """
    calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.tanh(x) + 1 if self.calls < 20 else torch.empty_like(x)
""",
}

NOT_FASTER = {
    "an answer kept by content": """
    kept = {}

    def forward(self, x):
        key = (x[:64].sum().item(), x[-64:].sum().item())
        if key not in self.kept:
            self.kept[key] = torch.tanh(x) + 1
        return self.kept[key]
""",
    # struct cudaAccessPolicyWindow: base, bytes, ratio, hit property (persisting), miss property (streaming).
    "a persisting L2": """
    class Window(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t), ("ratio", ctypes.c_float),
                    ("hit", ctypes.c_int), ("miss", ctypes.c_int), ("rest", ctypes.c_char * 64)]

    done = False

    def forward(self, x):
        if not self.done:
            name = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line)
            runtime = ctypes.CDLL(name)
            assert runtime.cudaDeviceSetLimit(6, ctypes.c_size_t(32 << 20)) == 0
            window = self.Window(x.data_ptr(), min(x.nbytes, 32 << 20), 1.0, 2, 1)
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert runtime.cudaStreamSetAttribute(stream, 1, ctypes.byref(window)) == 0
            self.done = True
        return torch.tanh(x) + 1
""",
    "a sleep before the work": """
    def forward(self, x):
        time.sleep(0.002)
        return torch.tanh(x) + 1
""",
    "slow first calls": """
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls < 8:
            time.sleep(0.2)
        return torch.tanh(x) + 1
""",
}

HONEST = {
    "the reference": """
    def forward(self, x):
        return torch.tanh(x) + 1
""",
    "a stream of its own, joined": """
    stream = None

    def forward(self, x):
        self.stream = self.stream or torch.cuda.Stream()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            out = torch.tanh(x) + 1
        torch.cuda.current_stream().wait_stream(self.stream)
        return out
""",
    "a graph fed with the inputs of each call": """
    graph = None

    def forward(self, x):
        if self.graph is None:
            self.x = x.clone()
            torch.tanh(self.x) + 1
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
                self.out = torch.tanh(self.x) + 1
        self.x.copy_(x)
        self.graph.replay()
        return self.out.clone()
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tricks")
    (made / "model.py").write_text(PROBLEM)
    return made


@pytest.fixture(scope="module")
def trial(folder):
    return Trial(load_problem(folder / "model.py"), torch.device("cuda:0"), 11)


@pytest.fixture(scope="module")
def baseline(folder, trial):
    session = BaselineSession(folder / "model.py", "cuda:0", "default")
    session.ready()
    stand = Stand(session, trial, 3)
    assert session.prepare(Variant("eager"), stand.inputs).error is None
    yield BaselineSide(stand, session, Variant("eager"))
    session.close()


@pytest.fixture(scope="module")
def started(folder, request):
    """A process for every solution that this run asks for: each takes seconds to start, so they start side by side."""
    bodies = {**REFUSED, **NOT_FASTER, **HONEST}
    wanted = {item.callspec.params["name"] for item in request.session.items if item.path == request.path}
    sessions = {}
    for name in sorted(wanted):
        path = folder / f"{name.replace(' ', '_').replace(',', '')}.py"
        path.write_text(HEAD + bodies[name])
        sessions[name] = TimedSession(find_solution(None, path), "cuda:0", policy=Policy(hide=(folder,)))
    with ThreadPoolExecutor(6) as pool:
        ready = {name: pool.submit(session.ready) for name, session in sessions.items()}
        # A process that still starts would burn the processor beside what is timed.
        wait(ready.values())
        yield sessions, ready
        for session in sessions.values():
            pool.submit(session.close)


@pytest.fixture
def judged(trial, baseline, started):
    """Rounds of a solution against eager: (verdict, witness). Raises what the clock raises."""
    sessions, ready = started

    def judge(name):
        ready[name].result()
        side = SolutionSide(Stand(sessions[name], trial, 3), 3, Tolerance(1e-2, 1e-2))
        try:
            taken = rounds.sample(side, [baseline], budget=0.6, seed=4, decisive=[baseline.name])
        finally:
            sessions[name].close()
        around = witness.surroundings(taken.batches(baseline.name))
        ratio = statistics.ratio(taken.samples(side.name), taken.samples(baseline.name))
        return statistics.verdict(ratio), witness.judge(taken.batches(side.name), around)

    return judge


@pytest.mark.parametrize("name", REFUSED)
def test_work_hidden_from_the_timer_is_refused(judged, name):
    try:
        verdict, found = judged(name)
    except (NotSame, rounds.SideFailed) as refused:
        assert str(refused)
        return
    assert not found.agrees, f"{verdict}, and {found.sentence}"


@pytest.mark.parametrize("name", NOT_FASTER)
def test_what_changes_nothing_is_not_called_faster(judged, name):
    try:
        verdict, _ = judged(name)
    except (NotSame, rounds.SideFailed):
        return
    assert verdict != statistics.FASTER


@pytest.mark.parametrize("name", HONEST)
def test_honest_neighbours_pass(judged, name):
    verdict, found = judged(name)
    assert found.agrees, found.sentence
    if name == "the reference":
        assert verdict in (statistics.SAME, statistics.UNSURE)
