"""What is no answer, or the wrong one: refused, and for the right reason."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from judging import ADD, LINEAR, judged, kinds, workspace

from utils.judge.verify import Request, verify
from utils.present.outcome import CannotTell

LINEAR_INIT = "    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, n)\n"


def adding(body: str, top: str = "", attributes: str = "") -> str:
    """A ModelNew for ADD with this body of forward(self, a, b)."""
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return f"{top}\nclass ModelNew(nn.Module):\n    {attributes or 'pass'}\n    def forward(self, a, b):\n{lines}"


# (solution for ADD, kind of the finding that must fail it, words its sentence must have)
REFUSED = {
    "one row is wrong": (adding("y = a + 2 * b\ny[3] += 1\nreturn y"), "values", "dim 0 at 3 of 40, all of dim 1"),
    "a close miss": (adding("return a + 2 * b + 0.02"), "values", "would pass with atol"),
    "another dtype": (
        adding("return (a + 2 * b).double()"),
        "structure",
        "out has dtype float64, the reference has float32",
    ),
    "another shape": (adding("return (a + 2 * b).view(-1)"), "structure", "out has shape (2560,)"),
    "a list instead of a tensor": (adding("return [a + 2 * b]"), "structure", "out is a list"),
    "nothing": (adding("pass"), "structure", "out is None"),
    "a lazy subclass": (
        adding("return (a + 2 * b).as_subclass(Lazy)", "class Lazy(torch.Tensor):\n    pass\n"),
        "structure",
        "not a torch.Tensor",
    ),
    "NaN": (adding("y = a + 2 * b\ny[0, 0] = float('nan')\nreturn y"), "values", "NaN or Inf on one side only"),
    "a constant": (adding("return torch.full_like(a, 0.5)"), "trivial", "every element that ModelNew returned is 0.5"),
    "an input changed": (adding("y = a + 2 * b\nb.zero_()\nreturn y"), "mutated_input", "ModelNew changed input 1"),
    "an input returned": (adding("return a.add_(b, alpha=2)"), "aliased_output", "shares memory with input 0"),
    "one buffer for all results": (
        adding(
            "self.o = torch.empty_like(a) if self.o is None else self.o\nreturn torch.add(a, b, alpha=2, out=self.o)",
            attributes="o = None",
        ),
        "overwritten_result",
        "the result of call 1 changed",
    ),
    "memory by address": (
        adding(
            "k = a.data_ptr()\nif k not in self.c:\n    self.c[k] = a + 2 * b\nreturn self.c[k].clone()",
            attributes="c = {}",
        ),
        "stale",
        "the values that lay at the same address before",
    ),
    "memory by object": (
        adding(
            "k = id(a)\nif k not in self.c:\n    self.c[k] = (a, a + 2 * b)\nreturn self.c[k][1].clone()",
            attributes="c = {}",
        ),
        "stale",
        "memoised by address or object",
    ),
    "memory by count": (
        adding("self.n += 1\nif self.n % 2:\n    self.y = a + 2 * b\nreturn self.y.clone()", attributes="n = 0"),
        "stale",
        "memoised",
    ),
    "a write past the end": (
        adding("import ctypes\nctypes.memset(b.data_ptr() + b.nbytes, 7, 16)\nreturn a + 2 * b"),
        "overrun",
        "outside the bounds of input 1",
    ),
    "strides ignored": (
        adding(
            "f = lambda t: torch.empty(0).set_(t.untyped_storage(), t.storage_offset(), (2560,), "
            "(1,))\nreturn (f(a) + 2 * f(b)).view(a.shape)"
        ),
        "strided",
        "silently gives another answer",
    ),
    "an exception": (
        adding("raise ValueError('no such case')"),
        "exception",
        "forward raised ValueError at model_new.py:7: no such case",
    ),
    "an early exit with code 0": (adding("import os\nos._exit(0)"), "exit", "exit code 0"),
    "SystemExit": (adding("raise SystemExit(0)"), "exit", "tried to end the process"),
    "a crash": (adding("import ctypes\nctypes.string_at(0)"), "crash", "SIGSEGV"),
    "an abort": (adding("import os\nos.abort()"), "crash", "SIGABRT"),
    "the reference imported": (
        adding("return M()(a, b)", "from model import Model as M"),
        "exception",
        "the reference (model.py) is not available to a solution",
    ),
    "no ModelNew": ("class Other(nn.Module):\n    pass\n", "exception", "defines no class named ModelNew"),
    "answers forged on every descriptor": (
        adding(
            "import os\nfor fd in range(3, 1024):\n    try:\n        os.write(fd, "
            "b'\\0\\0\\0\\x0b{\"ok\":true}')\n    except OSError:\n        pass\nreturn a"
        ),
        "protocol",
        "interfered with the protocol",
    ),
    "garbage sent by a thread": (
        adding(
            "import threading, os, time\ndef spam():\n    time.sleep(0.05)\n    for fd in range(300, 900):\n "
            "       try:\n            os.write(fd, b'x')\n"
            "        except OSError:\n            "
            "pass\nthreading.Thread(target=spam).start()\ntime.sleep(0.2)\nreturn a + 2 * b"
        ),
        "protocol",
        "interfered with the protocol",
    ),
    "a process left behind": (
        adding("return a + 2 * b", "import subprocess\nsubprocess.Popen(['sleep', '300'], start_new_session=True)"),
        "children",
        "left a process running (sleep)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_for_the_right_reason(name: str, tmp_path: Path) -> None:
    solution, kind, words = REFUSED[name]
    done = judged(tmp_path, ADD, solution)
    assert not done.passed
    assert kind in kinds(done), (kinds(done), done.reasons)
    assert any(words in reason for reason in done.reasons), done.reasons


def test_patching_torch_and_the_harness_changes_nothing(tmp_path: Path) -> None:
    top = """
import sys, gc, builtins, time
torch.equal = torch.allclose = lambda *a, **k: True
torch.Tensor.copy_ = lambda self, *a, **k: self
time.perf_counter = time.monotonic = lambda: 0.0
for item in gc.get_objects():
    if isinstance(item, type(sys)) and "judge" in getattr(item, "__name__", ""):
        item.compare = item.check_reply = lambda *a, **k: True
"""
    done = judged(tmp_path, ADD, adding("return a - b", top))
    assert not done.passed


def test_a_closed_connection_is_no_answer(tmp_path: Path) -> None:
    done = judged(tmp_path, ADD, adding("import os\nos.closerange(3, 1024)\nreturn a + 2 * b"))
    # The process ends when it finds its socket gone; whether the judge sees that or the closed end first is chance.
    assert not done.passed and kinds(done) & {"exit", "protocol"}


def test_a_hang_ends_in_time_and_is_named(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = judged(tmp_path, ADD, adding("while True:\n    pass"), timeout=1.5)
    assert kinds(done) == {"timeout"} and "hangs: running forward did not end within 1.5 s" in done.reasons[0]
    assert time.monotonic() - begun < 60


def test_too_much_memory_is_named(tmp_path: Path) -> None:
    body = "import time\nself.hoard = [torch.ones(1 << 24) for _ in range(64)]\ntime.sleep(5)\nreturn a + 2 * b"
    done = judged(tmp_path, ADD, adding(body), memory_limit=2 << 30)
    assert kinds(done) == {"memory"} and "more than 2.0 GiB" in done.reasons[0]


def test_unused_weights_are_found_though_they_are_constant_at_first(tmp_path: Path) -> None:
    problem = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
    def forward(self, x):
        return self.norm(x)
def get_inputs():
    return [torch.randn(5, 16)]
"""
    solution = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (16,))
"""
    done = judged(tmp_path, problem, solution)
    assert not done.passed and "values" in kinds(done)


def test_stale_packed_weights_are_named(tmp_path: Path) -> None:
    body = "    packed = None\n    def forward(self, x):\n        if self.packed is None:\n"
    body += "            self.packed = self.lin.weight.t().clone(), self.lin.bias.clone()\n"
    body += "        return (x @ self.packed[0] + self.packed[1]).clamp(min=0)\n"
    done = judged(tmp_path, LINEAR, "class ModelNew(nn.Module):\n" + LINEAR_INIT + body, trials=3)
    assert "stale" in kinds(done) and any("weights of the trial before" in reason for reason in done.reasons)


def test_keys_that_do_not_fit_are_accounted_for(tmp_path: Path) -> None:
    solution = (
        "class ModelNew(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        "
        "self.fc = nn.Linear(n, n)\n"
    )
    done = judged(tmp_path, LINEAR, solution + "    def forward(self, x):\n        return self.fc(x).relu()\n")
    assert kinds(done) == {"state_dict"}
    assert (
        "Model has no fc.weight, fc.bias that ModelNew wants; ModelNew has no lin.weight, lin.bias" in done.reasons[0]
    )
    wider = (
        "class ModelNew(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        "
        "self.lin = nn.Linear(n, n + 1)\n"
    )
    done = judged(tmp_path, LINEAR, wider + "    def forward(self, x):\n        return self.lin(x)\n")
    assert "lin.weight has shape [33, 32], in Model [32, 32]" in done.reasons[0]


def test_an_overridden_load_state_dict_is_not_asked(tmp_path: Path) -> None:
    solution = "class ModelNew(nn.Module):\n" + LINEAR_INIT
    solution += (
        "    def load_state_dict(self, *a, **k):\n        return None\n    def forward(self, x):\n   "
        "     return self.lin(x).relu()\n"
    )
    assert judged(tmp_path, LINEAR, solution).passed


def test_zeros_do_not_pass_where_the_result_is_small(tmp_path: Path) -> None:
    problem = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
def get_inputs():
    return [torch.randn(8, 20000)]
"""
    done = judged(
        tmp_path, problem, "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.zeros_like(x)\n"
    )
    assert "trivial" in kinds(done)
    assert any("a trivial answer would pass out (zeros" in str(finding) for finding in done.findings.of("warn"))
    honest = (
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        e = x.exp()\n        return e / "
        "e.sum(1, keepdim=True)\n"
    )
    assert judged(tmp_path, problem, honest).passed


def test_a_buffer_that_should_move_and_does_not(tmp_path: Path) -> None:
    problem = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6)
    def forward(self, x):
        return self.bn(x)
def get_inputs():
    return [torch.randn(9, 6)]
"""
    solution = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6)
    def forward(self, x):
        return torch.nn.functional.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)
"""
    done = judged(tmp_path, problem, solution, train=True)
    assert kinds(done) == {"buffers"} and "bn.running_mean" in done.reasons[0]


def test_a_file_named_torch_beside_the_solution_is_not_torch(tmp_path: Path) -> None:
    tmp_path.joinpath("torch.py").write_text("raise SystemExit(0)\n")
    tmp_path.joinpath("json.py").write_text("raise SystemExit(0)\n")
    done = judged(tmp_path, ADD, adding("import json\nreturn a + 2 * b"))
    assert done.passed, done.reasons
    assert any("gets the installed one" in str(finding) for finding in done.findings.of("warn"))


def test_nothing_of_the_workspace_can_be_seen_or_written(tmp_path: Path) -> None:
    body = f"""
import os
seen = []
for path in ({str(tmp_path)!r} + "/" + "py.ledom"[::-1], {str(Path(__file__).resolve())!r}):
    try:
        open(path).close()
        seen.append(path)
    except OSError:
        pass
for path in (__file__, os.__file__, "/etc/hostname", "/usr/lib/x"):
    try:
        open(path, "a").close()
        seen.append("wrote " + path)
    except OSError:
        pass
import socket
try:
    socket.create_connection(("127.0.0.1", 22), 0.2)
    seen.append("network")
except ConnectionRefusedError:
    seen.append("loopback answers")
except OSError:
    pass
if seen:
    raise RuntimeError(repr(seen))
open(os.path.join(os.environ["HOME"], "mine"), "w").close()
return a + 2 * b"""
    done = judged(tmp_path, ADD, adding(body.strip("\n")), trials=1)
    if "private file system" in done.sandbox["lacking"]:
        pytest.skip(f"no mount namespace here: {done.sandbox['lacking']['private file system']}")
    assert done.passed, done.reasons


def test_without_a_sandbox_it_says_so(tmp_path: Path) -> None:
    done = judged(tmp_path, ADD, adding("return a + 2 * b"), sandbox=False, trials=1)
    assert done.passed, done.reasons
    assert any("--no-sandbox" in str(finding) for finding in done.findings.of("warn"))


def test_a_seed_replays_a_run(tmp_path: Path) -> None:
    wrong = adding("y = a + 2 * b\nreturn y + (y > 2).float()")
    one = judged(tmp_path, ADD, wrong, seed=77, trials=1)
    two = judged(tmp_path, ADD, wrong, seed=77, trials=1)
    assert one.reasons == two.reasons and "77" in str(one.seed)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            "class Model(nn.Module):\n    def forward(self, a):\n        return a @ a\ndef get_inputs():\n   "
            " return [torch.randn(2, 3)]\n",
            "Model.forward failed",
        ),
        (
            "class Model(nn.Module):\n    def forward(self, x):\n        return torch.zeros(1)\ndef get_inputs():\n    "
            "return [{1}]\n",
            "cannot be handed to another process",
        ),
        ("def get_inputs():\n    return []\n", "no class named Model"),
    ],
)
def test_a_problem_that_is_not_fit_is_no_verdict(problem: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match=words):
        judged(tmp_path, problem, adding("return a"))


def test_missing_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="there is no solution"):
        verify(Request(workspace=str(tmp_path), device="cpu"))
    workspace(tmp_path, ADD, adding("return a"))
    with pytest.raises(CannotTell, match="there is no problem"):
        verify(Request(problem=str(tmp_path / "none.py"), solution=str(tmp_path / "model_new.py"), device="cpu"))
    with pytest.raises(CannotTell, match="--device tpu is none"):
        verify(Request(workspace=str(tmp_path), device="tpu"))
