"""Whole builds: what is compiled again and what is not, what is written, what the module says."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

from build_space import FILES, ROOT, SCALE_CU, Space

from utils.build.digest import sources_digest
from utils.problem.workspace import Workspace

# Of the example as it is documented, without the last line break.
EXAMPLE_SHA256 = "0a9400be73077f0dc0a2d6d6733ad91ae1808d3e41f5a611f9acbcef5877d762"


def steps(space: Space, tmp_path: Path, **environment: str | None) -> list[str]:
    """Builds, and the titles of the steps that ran."""
    report = tmp_path / "report.json"
    outcome = space.compile("--json", str(report), **environment)
    assert outcome.code == 0, outcome.text
    return sorted(json.loads(report.read_text())["results"]["compiled"])


def test_documented_example_is_unchanged_and_works(built_once: Space) -> None:
    """The documented example of a binding, byte for byte, in a module that imports after torch."""
    text = (FILES / "my_kernel_binding.cpp").read_text()
    assert hashlib.sha256(text.rstrip().encode()).hexdigest() == EXAMPLE_SHA256
    program = (
        "import torch, cuda_extension, json\n"
        "try:\n    cuda_extension.my_kernel_forward(torch.ones(3), config=1)\n"
        "except RuntimeError as error:\n    print(str(error).splitlines()[0])\n"
        "print(cuda_extension.scale(0, 0, 0, 1.0))\n"
        "print(cuda_extension.my_kernel_forward.__doc__)\n"
    )
    outcome = built_once.python(program)
    assert outcome.code == 0, outcome.text
    assert "Input must be a CUDA tensor" in outcome.out
    assert "False" in outcome.out
    assert "my_kernel_forward(input: torch.Tensor, config: " in outcome.out


def test_facts_on_disk_and_in_the_module_agree(built_once: Space) -> None:
    outcome = built_once.python(
        "import json, torch, cuda_extension as c; print(json.dumps([c.__build__, c.__kernels__, c.__doc__]))"
    )
    build, kernels, doc = json.loads(outcome.out)
    facts = built_once.facts
    (module,) = built_once.modules
    assert facts == {**build, "module": module.name, "module_sha256": hashlib.sha256(module.read_bytes()).hexdigest()}
    assert build["sources_sha256"] == sources_digest(Workspace(built_once.root))
    assert build["architectures"] == ["9.0a"]
    assert build["nvcc"].count(".") == 2
    assert "." in build["torch"]
    assert kernels["my_kernel"]["file"] == "kernels/my_kernel_binding.cpp"
    assert kernels["my_kernel"]["functions"] == ["my_kernel_forward"]
    line = built_once.read("kernels/my_kernel_binding.cpp").splitlines()[kernels["my_kernel"]["line"] - 1]
    assert line.startswith("REGISTER_BINDING")
    assert "my_kernel_forward(input: " in doc


def test_nothing_to_do(space: Space, tmp_path: Path) -> None:
    before = space.modules[0].stat()
    outcome = space.compile()
    assert outcome.code == 0
    assert outcome.out.startswith("up to date: cuda_extension")
    assert len(outcome.out.strip().splitlines()) == 1
    assert space.modules[0].stat().st_mtime_ns == before.st_mtime_ns
    assert steps(space, tmp_path) == []


def test_touching_is_no_change_and_an_edit_compiles_one_file(space: Space, tmp_path: Path) -> None:
    os.utime(space.root / "kernels/scale.cu")
    assert steps(space, tmp_path) == []
    space.replace("kernels/scale.cu", "index < size", "index <  size")
    assert steps(space, tmp_path) == ["build facts", "link cuda_extension", "nvcc kernels/scale.cu"]


def test_older_file_copied_over_a_newer_one_is_a_change(space: Space, tmp_path: Path) -> None:
    old = space.write("kernels/scale.cu", SCALE_CU + "// as it was\n")
    os.utime(old, (1e9, 1e9))
    assert "nvcc kernels/scale.cu" in steps(space, tmp_path)
    assert space.facts["sources_sha256"] == sources_digest(Workspace(space.root))


def test_headers_are_tracked(space: Space, tmp_path: Path) -> None:
    space.write("kernels/common/factor.cuh", "#define FACTOR 2.0f\n")
    space.write(
        "kernels/scale.cu", '#include "common/factor.cuh"\n' + SCALE_CU.replace("* factor;", "* factor * FACTOR;")
    )
    assert "nvcc kernels/scale.cu" in steps(space, tmp_path)
    space.write("kernels/common/factor.cuh", "#define FACTOR 3.0f\n")
    assert steps(space, tmp_path) == ["build facts", "link cuda_extension", "nvcc kernels/scale.cu"]


def test_header_outside_kernels_is_tracked(space: Space, tmp_path: Path) -> None:
    space.write("settings.h", "#define FACTOR 2.0f\n")
    space.write("kernels/scale.cu", '#include "../settings.h"\n' + SCALE_CU.replace("* factor;", "* factor * FACTOR;"))
    steps(space, tmp_path)
    before = sources_digest(Workspace(space.root))
    space.write("settings.h", "#define FACTOR 3.0f\n")
    assert sources_digest(Workspace(space.root)) != before
    assert "nvcc kernels/scale.cu" in steps(space, tmp_path)


def test_deleted_source_is_linked_no_more(space: Space, tmp_path: Path) -> None:
    for name in ("scale.cu", "scale_binding.cpp"):
        (space.root / "kernels" / name).unlink()
    assert steps(space, tmp_path) == ["build facts", "link cuda_extension"]
    outcome = space.python(
        "import torch, cuda_extension; print(list(cuda_extension.__kernels__), hasattr(cuda_extension, 'scale'))"
    )
    assert outcome.out.strip() == "['my_kernel'] False"


def test_another_architecture_compiles_the_kernels_again(space: Space, tmp_path: Path) -> None:
    ran = steps(space, tmp_path, TORCH_CUDA_ARCH_LIST="8.0+PTX")
    assert ran == ["build facts", "link cuda_extension", "nvcc kernels/my_kernel.cu", "nvcc kernels/scale.cu"]
    assert space.facts["architectures"] == ["8.0+PTX"]
    assert steps(space, tmp_path, TORCH_CUDA_ARCH_LIST=" sm_80+PTX; ") == [], "another spelling is the same build"


def test_swapped_module_is_replaced(space: Space) -> None:
    (module,) = space.modules
    good = module.read_bytes()
    module.write_bytes(good + b"\0")
    outcome = space.compile()
    assert outcome.code == 0
    assert not outcome.out.startswith("up to date")
    assert module.read_bytes() == good


def test_removed_build_folder_or_module_is_made_again(light_space: Space) -> None:
    assert light_space.compile().code == 0
    for path in light_space.modules:
        path.unlink()
    assert light_space.compile().code == 0
    assert len(light_space.modules) == 1
    shutil.rmtree(light_space.root / "build")
    outcome = light_space.compile()
    assert outcome.code == 0, outcome.text
    assert light_space.python("import torch, cuda_extension").code == 0


def test_modules_of_other_pythons_do_not_stay(space: Space) -> None:
    other = space.root / "cuda_extension.cpython-38-x86_64-linux-gnu.so"
    other.write_bytes(b"stale")
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    assert space.compile().code == 0
    assert not other.exists()
    assert len(space.modules) == 1


def test_resource_table_and_spill_warning(space: Space, tmp_path: Path) -> None:
    space.write(
        "kernels/scale.cu",
        SCALE_CU
        + """
template <int N>
__global__ void __launch_bounds__(1024, 2) spilling(float* x) {
    __shared__ float tile[64];
    float values[N];
    for (int i = 0; i < N; ++i) values[i] = x[i * 1024 + threadIdx.x];
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) values[i] += values[j] * values[i];
    tile[threadIdx.x % 64] = values[N - 1];
    __syncthreads();
    for (int i = 0; i < N; ++i) x[i * 1024 + threadIdx.x] = values[i] + tile[i % 64];
}
template __global__ void spilling<48>(float*);
""",
    )
    report = tmp_path / "report.json"
    outcome = space.compile("--json", str(report))
    assert outcome.code == 0, outcome.text
    assert "warning: spilling<48> spills to local memory" in outcome.out
    rows = {row["kernel"]: row for row in json.loads(report.read_text())["results"]["resources"]}
    assert set(rows) == {"my_kernel_impl<128, 32>", "my_kernel_impl<256, 16>", "scale_kernel", "spilling<48>"}
    spilling = rows["spilling<48>"]
    assert spilling["spill_stores"] > 0
    assert spilling["spill_loads"] > 0
    assert spilling["registers"] == 32
    assert spilling["shared"] == 256
    assert spilling["architecture"] == "sm_90a"
    assert spilling["file"] == "kernels/scale.cu"
    assert rows["scale_kernel"]["spill_stores"] == 0
    assert 0 < rows["scale_kernel"]["registers"] < 32
    # An unchanged file keeps its rows.
    space.replace("kernels/my_kernel.cu", "2.0f", "4.0f")
    outcome = space.compile()
    assert "spilling<48>" in outcome.out


def test_json_record(space: Space, tmp_path: Path) -> None:
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    report = tmp_path / "report.json"
    outcome = space.compile("--json", str(report))
    record = json.loads(report.read_text())
    assert outcome.code == record["exit_code"] == 0
    assert record["schema"].startswith("workbench/compile/")
    assert record["verdict"] == "BUILT"
    assert record["simulated"] is False
    assert record["environment"]["architectures"] == ["9.0a"]
    assert record["results"]["module"] == str(space.modules[0])
    assert set(record["results"]["kernels"]) == {"my_kernel", "scale"}
    assert record["results"]["seconds"] > 0
    space.compile("--json", str(report))
    assert json.loads(report.read_text())["verdict"] == "UP_TO_DATE"


def test_compile_commands(built_once: Space) -> None:
    entries = {entry["file"]: entry for entry in json.loads(built_once.read("compile_commands.json"))}
    assert set(entries) == {
        *("kernels/my_kernel.cu", "kernels/my_kernel_binding.cpp", "kernels/scale.cu", "kernels/scale_binding.cpp"),
        str(ROOT / "binding.cpp"),
    }
    for entry in entries.values():
        assert entry["directory"] == str(built_once.root)
        assert (built_once.root / entry["file"]).is_file()
    assert "--cuda-gpu-arch=sm_90a" in entries["kernels/scale.cu"]["arguments"]
    binding = entries["kernels/my_kernel_binding.cpp"]["arguments"]
    assert any(argument.endswith("torch/include") for argument in binding)


def test_log_holds_commands_and_output(built_once: Space) -> None:
    log = built_once.read("build/compile.log")
    assert "=== nvcc kernels/scale.cu" in log
    assert "-gencode=arch=compute_90a,code=sm_90a" in log
    assert "ptxas info" in log
    assert "--use_fast_math" not in log
    assert "__CUDA_NO_HALF" not in log


def test_no_torch_is_imported_by_a_build(space: Space) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from utils.build import build\nfrom utils.problem.workspace import find_workspace\n"
        "result = build(find_workspace(sys.argv[1]) if len(sys.argv) > 1 else find_workspace('.'))\n"
        "print(result.verdict, 'torch' in sys.modules)\n"
    )
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    assert space.python(program).out.split() == ["BUILT", "False"]


def test_same_stem_in_both_languages_and_host_sources(space: Space, tmp_path: Path) -> None:
    """C01: objects are named after the whole path."""
    host = "#include <cublasLt.h>\n#include <cudnn.h>\n"
    host += 'extern "C" int versions() { return (cublasLtGetVersion() > 0) + (cudnnGetVersion() > 0); }\n'
    space.write("kernels/scale.cpp", host)
    space.replace("kernels/scale_binding.cpp", "bool scale(", 'extern "C" int versions();\nbool scale(')
    space.replace(
        "kernels/scale_binding.cpp", 'm.def("scale", &scale);', 'm.def("scale", &scale); m.def("versions", &versions);'
    )
    assert "g++ kernels/scale.cpp" in [
        step.replace("c++", "g++") if step.startswith("c++") else step for step in steps(space, tmp_path)
    ]
    assert space.python("import torch, cuda_extension; print(cuda_extension.versions())").out.strip() == "2"


def test_sources_in_folders_are_named_as_not_built(space: Space) -> None:
    space.write("kernels/old/scale.cu", SCALE_CU)
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert "not built: kernels/old/scale.cu" in outcome.out


def test_building_blocks_of_the_repository_are_found_from_any_workspace(space: Space, tmp_path: Path) -> None:
    headers = sorted((ROOT / "kernels/common").glob("*.cuh"))
    if not headers:
        space.write("kernels/none.txt", "")
        return
    name = headers[0].name
    space.write("kernels/scale.cu", f'#include "common/{name}"\n' + SCALE_CU)
    assert "nvcc kernels/scale.cu" in steps(space, tmp_path)
    tracked = json.loads(space.read("build/state.json"))["objects"]["build/obj/kernels/scale.cu.o"]
    assert any(path.endswith(f"kernels/common/{name}") for path in tracked)


def test_edit_during_a_build_is_seen_by_the_next(space: Space, tmp_path: Path) -> None:
    """The record of a build is of what the compilers were given, not of what lies there when they end."""
    space.write("kernels/scale.cu", SCALE_CU + "// one\n")
    import subprocess

    run = subprocess.Popen(
        space.command(), env=space.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("compiling"):
            break
    time.sleep(0.3)
    space.write("kernels/scale.cu", SCALE_CU + "// two\n")
    run.communicate(timeout=300)
    assert run.returncode == 0
    steps(space, tmp_path)
    assert space.facts["sources_sha256"] == sources_digest(Workspace(space.root))
    assert steps(space, tmp_path) == []


def test_verbose_shows_commands(space: Space) -> None:
    outcome = space.compile("--verbose")
    assert outcome.code == 0
    assert "-gencode=arch=compute_90a,code=sm_90a" in outcome.out


def test_help_says_what_it_does(build_environment: dict[str, str], tmp_path: Path) -> None:
    outcome = Space(tmp_path, build_environment).compile("--help")
    assert outcome.code == 0
    for word in ("--workspace", "--json", "--verbose", "--sim", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS"):
        assert word in outcome.out
