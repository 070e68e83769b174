"""Odd paths, read-only places, locks, and builds that run at once or die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build_space import ROOT, SCALE_CU, Outcome, Space

from utils.build import storage
from utils.build.digest import sources_digest
from utils.present.outcome import CannotTell
from utils.problem.workspace import Workspace

ODD = "my ws (1) é $HOME 'q' `id` & ; # , :%"


def test_workspace_of_any_name(light_space: Space) -> None:
    """C20: spaces, brackets, quotes, $ and non-ASCII letters, in the folder; most of them in file names."""
    root = light_space.root.parent / ODD
    light_space.root.rename(root)
    space = Space(root, light_space.environment)
    (root / "kernels/scale.cu").rename(root / "kernels/scale (é).cu")
    (root / "kernels/scale_binding.cpp").rename(root / "kernels/scale (é)_binding.cpp")
    space.write("kernels/common/my factor.cuh", "#define FACTOR 2.0f\n")
    space.replace(
        "kernels/scale (é).cu",
        "#include <cuda_runtime.h>",
        '#include "common/my factor.cuh"\n#include <cuda_runtime.h>',
    )
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert space.python("import torch, cuda_extension as c; print(list(c.__kernels__))").out.strip() == "['scale']"
    assert space.compile().out.startswith("up to date")
    # Headers are tracked there too.
    space.write("kernels/common/my factor.cuh", "#define FACTOR 3.0f\n")
    assert "nvcc kernels/scale (é).cu" in space.compile().err


def test_workspace_of_a_name_nvcc_cannot_take_is_refused(light_space: Space) -> None:
    root = light_space.root.parent / 'my "ws"'
    light_space.root.rename(root)
    space = Space(root, light_space.environment)
    outcome = space.compile()
    assert outcome.code == 2, outcome.text
    assert "double quote" in outcome.err
    assert space.modules == []


def test_repository_of_any_name(light_space: Space, tmp_path: Path) -> None:
    """The headers of the repository are reached whatever its folder is called."""
    repository = tmp_path / ODD
    repository.mkdir()
    for name in ("binding.cpp", "binding_registry.h"):
        shutil.copy(ROOT / name, repository)
    shutil.copytree(ROOT / "utils", repository / "utils", ignore=shutil.ignore_patterns("__pycache__", "src"))
    (repository / "kernels/common").mkdir(parents=True)
    (repository / "kernels/common/factor of ours.cuh").write_text("#define FACTOR 2.0f\n")
    light_space.replace(
        "kernels/scale.cu",
        "#include <cuda_runtime.h>",
        '#include "common/factor of ours.cuh"\n#include <cuda_runtime.h>',
    )
    done = subprocess.run(
        ["bash", str(repository / "utils/compile.sh"), "--workspace", str(light_space.root)],
        env=light_space.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert light_space.facts["sources_sha256"] != sources_digest(Workspace(light_space.root)), (
        "another repository's headers"
    )


def bound_by_permissions(space: Space, *arguments: str, **environment: str) -> Outcome:
    """Runs compile.sh bound by permission bits, which root is not unless it gives that right away."""
    command = space.command(*arguments)
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not installed, and root may write everywhere")
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner", *command]
    done = subprocess.run(
        command, env={**space.environment, **environment}, capture_output=True, text=True, timeout=300
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def given_away(*paths: Path) -> None:
    """Makes `paths` readable to all and writable to nobody here: of another user where that can be done."""
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)


def test_read_only_workspace(space: Space) -> None:
    """C22: up to date is said; what would have to be built is refused, naming path and owner; without HOME too."""
    everything = [space.root, *(path for path in space.root.rglob("*") if not path.is_symlink())]
    given_away(*everything)
    outcome = bound_by_permissions(space, HOME="/nonexistent")
    assert outcome.code == 0, outcome.text
    assert outcome.out.startswith("up to date")
    outcome = bound_by_permissions(space, HOME="/nonexistent", TORCH_CUDA_ARCH_LIST="8.0")
    assert outcome.code == 2, outcome.text
    assert f"cannot write in {space.root}: Permission denied" in outcome.err
    assert "owner of" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_build_folder_of_another_user(space: Space) -> None:
    """C23: what sudo left behind; the module of older sources goes."""
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    given_away(space.root / "build")
    outcome = bound_by_permissions(space)
    assert outcome.code == 2, outcome.text
    assert f"cannot write in {space.root / 'build'}" in outcome.err
    assert "owner of" in outcome.err
    assert space.modules == []
    (space.root / "build").chmod(0o755)


def test_file_in_the_way_of_the_build_folder(space: Space) -> None:
    shutil.rmtree(space.root / "build")
    space.write("build", "not a folder\n")
    outcome = space.compile()
    assert outcome.code == 2
    assert f"cannot write in {space.root / 'build'}" in outcome.err
    assert "Traceback" not in outcome.text


def test_json_in_a_place_that_is_not_there(space: Space) -> None:
    outcome = space.compile("--json", str(space.root / "nowhere/report.json"))
    assert outcome.code == 2
    assert "nowhere" in outcome.err
    assert "Traceback" not in outcome.text


def test_unwritable_temporary_folder_does_not_matter(space: Space) -> None:
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    outcome = space.compile(TMPDIR="/proc/nowhere")
    assert outcome.code == 0, outcome.text


def test_two_builds_at_once(space: Space) -> None:
    """C16: both succeed, and one waits for the other."""
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    runs = [
        subprocess.Popen(
            space.command(), env=space.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    texts = ["".join(run.communicate(timeout=300)) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], texts
    assert sum("another build is running here (pid " in text for text in texts) >= 1, texts
    assert sum("compiling" in text for text in texts) == 1, "the others find the work done"
    assert space.python("import torch, cuda_extension").code == 0
    assert space.compile().out.startswith("up to date")


def test_two_builds_at_once_for_different_architectures(space: Space) -> None:
    runs = [
        subprocess.Popen(
            space.command(),
            env={**space.environment, "TORCH_CUDA_ARCH_LIST": architecture},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for architecture in ("8.0", "8.6")
    ]
    texts = ["".join(run.communicate(timeout=300)) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], texts
    assert space.facts["architectures"] in (["8.0"], ["8.6"])
    assert space.python("import torch, cuda_extension").code == 0


def test_lock_of_a_dead_build_locks_nothing(space: Space) -> None:
    """C15: lock files of any origin are left behind by the dead and hold nobody up."""
    space.write("build/.lock", "pid 999999, since 00:00:00")
    space.write("build/lock", "")
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert "another build" not in outcome.text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_build_that_is_stopped(space: Space, number: int) -> None:
    """No half-written module, no lock, no compiler left over; and the next build is whole."""
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    before = space.modules[0].read_bytes()
    run = subprocess.Popen(
        [sys.executable, "-m", "utils.build", "--workspace", str(space.root)],
        cwd=ROOT,
        env=space.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that run in the background ignore SIGINT, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("compiling"):
            break
    time.sleep(0.2)
    run.send_signal(number)
    run.wait(timeout=60)
    assert run.returncode != 0
    if number == signal.SIGKILL:
        # Nobody could clean up: what is there is the old module, whole, and its facts tell that it is stale.
        assert [path.read_bytes() for path in space.modules] == [before]
        assert space.facts["sources_sha256"] != sources_digest(Workspace(space.root))
    else:
        assert space.modules == []
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert space.facts["sources_sha256"] == sources_digest(Workspace(space.root))
    assert space.python("import torch, cuda_extension").code == 0


# The cache folder


def test_cache_folder_follows_xdg_then_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert storage.cache_folder() == tmp_path / "xdg/kernel-workbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert storage.cache_folder() == tmp_path / ".cache/kernel-workbench"


def test_cache_folder_that_cannot_be_made_falls_back_to_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr(storage.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = storage.cache_folder()
    assert folder == tmp_path / f"kernel-workbench-{os.getuid()}"
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700


def test_cache_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cached is compiled into modules: a folder open to others could be filled by them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "xdg/kernel-workbench").mkdir(parents=True)
    (tmp_path / "xdg/kernel-workbench").chmod(0o777)
    monkeypatch.setattr(storage.tempfile, "gettempdir", lambda: str(tmp_path))
    assert storage.cache_folder() == tmp_path / f"kernel-workbench-{os.getuid()}"


def test_writable_folder_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotTell, match=r"cannot write in .*file/build"):
        storage.writable_folder(tmp_path / "file/build")


def test_record_that_is_rubbish_is_made_again(light_space: Space) -> None:
    space = light_space
    space.write("build/state.json", "[1, 2")
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert json.loads(space.read("build/state.json"))["plan"]
