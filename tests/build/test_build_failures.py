"""Broken sources and unfit environments, with the real compilers: exit code, first screen, no stale module."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from build_space import SCALE_BINDING, SCALE_CU, Outcome, Space


def refused(space: Space, *words: str, code: int = 1, **environment: str | None) -> Outcome:
    """Compiles, and expects `code`, all `words` in what is shown, no traceback and no module left."""
    outcome = space.compile(**environment)
    assert outcome.code == code, outcome.text
    for word in words:
        assert word in outcome.text, f"{word!r} is missing in:\n{outcome.text}"
    assert "Traceback" not in outcome.text
    assert space.modules == []
    return outcome


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


# Before any compiler runs


def test_no_kernels_folder(tmp_path: Path, build_environment: dict[str, str]) -> None:
    refused(Space(tmp_path, build_environment), "no kernels/ folder")


def test_no_binding(tmp_path: Path, build_environment: dict[str, str]) -> None:
    space = Space(tmp_path, build_environment)
    space.write("kernels/scale.cu", SCALE_CU)
    refused(space, "no kernels/*_binding.cpp was found", "scale.cu", "REGISTER_BINDING")


def test_workspace_that_is_no_folder(tmp_path: Path, build_environment: dict[str, str]) -> None:
    outcome = Space(tmp_path / "nowhere", build_environment).compile()
    assert outcome.code == 2
    assert "is not a folder" in outcome.text


def test_signature_that_differs_between_the_pair(space: Space) -> None:
    space.replace(
        "kernels/scale_binding.cpp",
        "int size, float factor, cudaStream_t stream);",
        "long size, float factor, cudaStream_t stream);",
    )
    outcome = refused(
        space,
        "kernels/scale_binding.cpp:5: scale_launcher is declared otherwise than it is defined in kernels/scale.cu:8",
        "parameter 3 is `long size` in the declaration and `int size` in the definition",
    )
    assert "compiling" not in outcome.text


def test_parameter_missing_on_one_side(space: Space) -> None:
    space.replace(
        "kernels/scale.cu",
        "float factor, cudaStream_t stream) {\n    scale_kernel",
        "float factor) {\n    cudaStream_t stream = 0; scale_kernel",
    )
    refused(space, "the declaration has 5 parameters, the definition 4", "`cudaStream_t stream`")


def test_launcher_defined_in_two_files(space: Space) -> None:
    """C02: an old attempt left in kernels/."""
    space.write("kernels/scale_v2.cu", SCALE_CU)
    refused(space, "scale_launcher is defined twice", "kernels/scale.cu:8", "kernels/scale_v2.cu:8", "old attempt")


def test_second_module(space: Space) -> None:
    """C06"""
    space.write(
        "kernels/foo_binding.cpp", '#include <pybind11/pybind11.h>\n\nPYBIND11_MODULE(foo, m) { m.doc() = "mine"; }\n'
    )
    refused(space, "kernels/foo_binding.cpp:3: a second module: PYBIND11_MODULE(foo, ...)", "REGISTER_BINDING")


def test_module_macro_in_a_comment_or_string_is_no_module(space: Space) -> None:
    space.write(
        "kernels/scale.cu", SCALE_CU + '// PYBIND11_MODULE(foo, m)\nconst char* text = "PYBIND11_MODULE(foo, m)";\n'
    )
    outcome = space.compile()
    assert outcome.code == 0, outcome.text


def test_one_name_registered_in_two_files(space: Space) -> None:
    space.write("kernels/other_binding.cpp", SCALE_BINDING)
    refused(
        space, "two kernels are registered as 'scale'", "kernels/other_binding.cpp:15", "kernels/scale_binding.cpp:15"
    )


@pytest.mark.parametrize("name", ["bad$name.cu", "bad'name.cu", 'bad"name.cu', "bad\\name.cu"])
def test_file_name_nvcc_cannot_take(space: Space, name: str) -> None:
    space.write(f"kernels/{name}", "__global__ void k() {}\n")
    refused(space, "has a character nvcc cannot take", "rename the file")


# What the compilers say


def test_first_error_of_each_failed_file(space: Space) -> None:
    """C14: several files, each with its own error; the errors that follow from it are not shown."""
    space.replace("kernels/scale.cu", "* factor;", "* factor")
    space.write("kernels/other.cu", "__global__ void other(float* x) { x[0] = unknown;\n    x[1] = unknown2; }\n")
    outcome = refused(
        space,
        'kernels/scale.cu:6: expected a ";"',
        'kernels/other.cu:1: identifier "unknown" is undefined',
        "what it means",
        "build/compile.log",
    )
    assert "unknown2" not in outcome.text
    log = space.read("build/compile.log")
    assert "unknown2" in log
    assert "nvcc" in log


def test_error_in_a_binding_names_its_line(space: Space) -> None:
    space.replace("kernels/scale_binding.cpp", "return true;", "return nothing;")
    refused(space, "kernels/scale_binding.cpp:10: ", "nothing", "not declared in this scope")


def test_missing_header(space: Space) -> None:
    space.replace("kernels/scale.cu", "#include <cuda_runtime.h>", '#include "common/nowhere.cuh"')
    refused(space, "kernels/scale.cu:1: ", "nowhere.cuh", "kernels/common/")


def test_one_registration_name_twice_in_a_file(space: Space) -> None:
    space.replace(
        "kernels/scale_binding.cpp",
        "REGISTER_BINDING(scale, register_scale);",
        "REGISTER_BINDING(scale, register_scale);\n" * 2,
    )
    refused(space, "two kernels are registered as 'scale'", "kernels/scale_binding.cpp:16")


def test_half_arithmetic_compiles(space: Space) -> None:
    """C13: torch's extension flags would switch the operators off."""
    space.write(
        "kernels/halves.cu",
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
        "__global__ void halves(__half* a, __half2* b, __nv_bfloat16* c) {\n"
        "    a[0] = a[1] + a[2];\n    b[0] = b[1] * b[2];\n    c[0] = c[1] + c[2];\n    a[3] = 1.5f;\n}\n",
    )
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert "halves" in outcome.out


def test_hopper_instructions_compile(space: Space) -> None:
    """9.0 means sm_90a: setmaxnreg and wgmma exist only there."""
    space.write(
        "kernels/hopper.cu",
        '__global__ void __launch_bounds__(128) hopper() {\n    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");\n'
        '    asm volatile("wgmma.fence.sync.aligned;");\n}\n',
    )
    outcome = space.compile()
    assert outcome.code == 0, outcome.text


def test_instruction_of_another_architecture_is_explained(space: Space) -> None:
    space.write(
        "kernels/hopper.cu",
        "__global__ void __launch_bounds__(128) hopper() {\n"
        '    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");\n}\n',
    )
    refused(
        space,
        "kernels/hopper.cu",
        "setmaxnreg",
        "does not exist on one of the architectures",
        TORCH_CUDA_ARCH_LIST="8.0",
    )


def test_too_much_shared_memory_is_explained(space: Space) -> None:
    space.write(
        "kernels/large.cu",
        "__global__ void large(float* x) {\n    __shared__ float tile[60000];\n    tile[threadIdx.x] = x[0];\n"
        "    __syncthreads();\n    x[1] = tile[7];\n}\n",
    )
    refused(space, "uses too much shared data", "cudaFuncAttributeMaxDynamicSharedMemorySize")


# What the linker says


def test_pair_is_missing(space: Space) -> None:
    """C04 a"""
    (space.root / "kernels/scale.cu").unlink()
    refused(
        space,
        "kernels/scale_binding.cpp:5: scale_launcher is declared here and defined nowhere",
        "there is no kernels/scale.cu",
    )


def test_launcher_declared_but_not_defined(space: Space) -> None:
    space.replace("kernels/scale.cu", "void scale_launcher", "void scale_launch")
    refused(
        space,
        "kernels/scale_binding.cpp:5: scale_launcher is declared here and defined nowhere",
        "scale_launch in kernels/scale.cu:8",
    )


def test_extern_c_in_the_binding_only(space: Space) -> None:
    """C04 b"""
    space.replace("kernels/scale.cu", 'extern "C" void', "void")
    refused(space, "kernels/scale_binding.cpp:5", "defined without it in kernels/scale.cu:8", "one side only")


def test_extern_c_in_the_kernel_only(space: Space) -> None:
    space.replace("kernels/scale_binding.cpp", 'extern "C" void', "void")
    refused(space, 'scale_launcher is defined extern "C" in kernels/scale.cu:8', "one side only")


def test_undefined_torch_symbol_is_demangled(space: Space) -> None:
    """C04 c"""
    space.write(
        "kernels/scale.cpp",
        "namespace at { int no_such_function(double); }\nint call_it() { return at::no_such_function(1.0); }\n",
    )
    refused(space, "at::no_such_function(double)", "kernels/scale.cpp:1")


def test_driver_api_is_explained(space: Space) -> None:
    space.write("kernels/scale.cpp", "#include <cuda.h>\nint call_it() { return cuInit(0); }\n")
    refused(space, "cuInit", "cudaGetDriverEntryPoint")


def test_definition_behind_a_macro_found_twice_by_the_linker(space: Space) -> None:
    macro = '#define DEFINE extern "C" void hidden_twin() {}\nDEFINE\n'
    space.write("kernels/one.cpp", macro)
    space.write("kernels/two.cpp", macro)
    refused(space, "hidden_twin is defined in more than one file", "kernels/one.cpp", "kernels/two.cpp")


# What the registry says at the import that ends a build


def test_one_python_name_from_two_registrations(space: Space) -> None:
    space.write(
        "kernels/other_binding.cpp",
        '#include "../binding_registry.h"\n\nvoid reg(pybind11::module& m) { m.def("scale", [] {}); }\n\n'
        "REGISTER_BINDING(other, reg);\n",
    )
    refused(
        space,
        "two kernels define the Python name 'scale'",
        "kernels/other_binding.cpp:5",
        "kernels/scale_binding.cpp:15",
    )


def test_one_cpp_type_registered_twice(space: Space) -> None:
    """C19"""
    space.write("kernels/cfg.h", "#pragma once\nstruct Cfg { int tile; };\n")
    for name in ("one", "two"):
        space.write(
            f"kernels/{name}_binding.cpp",
            f'#include "../binding_registry.h"\n#include "cfg.h"\n\n'
            f'void reg_{name}(pybind11::module& m) {{ pybind11::class_<Cfg>(m, "Cfg_{name}"); }}\n\n'
            f"REGISTER_BINDING({name}, reg_{name});\n",
        )
    refused(space, "is registered twice", "kernels/one_binding.cpp:6", "kernels/two_binding.cpp:6", "module_local")


def test_registration_that_needs_torch_itself(light_space: Space) -> None:
    """The import that ends a build does without torch where it can; nobody is refused for that."""
    space = light_space
    more = 'm.def("scale", &scale); m.attr("dtype") = pybind11::module_::import("torch").attr("float32");'
    space.replace("kernels/scale_binding.cpp", 'm.def("scale", &scale);', more)
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    assert space.python("import torch, cuda_extension as c; print(c.dtype)").out.strip() == "torch.float32"


def test_registration_that_throws(light_space: Space) -> None:
    space = light_space
    space.replace("kernels/scale_binding.cpp", 'm.def("scale", &scale);', 'throw std::runtime_error("out of luck");')
    refused(space, "kernels/scale_binding.cpp:15", "out of luck")


def test_crash_at_import_is_reported_as_such(light_space: Space) -> None:
    space = light_space
    space.replace("kernels/scale_binding.cpp", 'm.def("scale", &scale);', "*reinterpret_cast<volatile int*>(8) = 1;")
    refused(space, "importing the module crashed (SIGSEGV)")


# Environments


def test_unsupported_architecture(space: Space) -> None:
    """C07"""
    outcome = space.compile(TORCH_CUDA_ARCH_LIST="9.0;7.0")
    assert outcome.code == 2
    assert "TORCH_CUDA_ARCH_LIST=9.0;7.0" in outcome.err
    assert "cannot compile for 7.0 (sm_70)" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_nonsense_architecture_is_one_line(space: Space) -> None:
    outcome = space.compile(TORCH_CUDA_ARCH_LIST="fast")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
    assert "'fast' is not an architecture" in outcome.err


def test_unfit_environment_leaves_no_module_of_older_sources(space: Space) -> None:
    outcome = space.compile(TORCH_CUDA_ARCH_LIST="fast")
    assert outcome.code == 2
    assert space.modules, "the module is of the present sources: nothing is wrong with it"
    space.write("kernels/scale.cu", SCALE_CU + "// changed\n")
    refused(space, "not an architecture", code=2, TORCH_CUDA_ARCH_LIST="fast")


def fake_nvcc(folder: Path, release: str) -> Path:
    text = f'#!/bin/sh\necho "Cuda compilation tools, release {release}, V{release}.89"\n'
    executable(folder / "bin/nvcc", text)
    return folder


def test_toolkit_of_another_cuda(space: Space, tmp_path: Path) -> None:
    """C09"""
    home = fake_nvcc(tmp_path / "cuda11", "11.8")
    outcome = space.compile(CUDA_HOME=str(home))
    assert outcome.code == 2
    assert "nvcc is of CUDA 11.8" in outcome.err
    assert str(home / "bin/nvcc") in outcome.err
    assert "torch" in outcome.err
    assert "Traceback" not in outcome.err


def wrapped_gcc(path: Path, major: int) -> Path:
    """A g++ that says it is another version to the preprocessor."""
    return executable(path, f'#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__={major} "$@"\n')


def test_host_compiler_too_new(space: Space, tmp_path: Path) -> None:
    """C10: nvcc's own check fires; the remedy names the variables, and no flag was added to silence it."""
    space.write("kernels/scale.cu", SCALE_CU + "// compile again\n")
    compiler = wrapped_gcc(tmp_path / "g++-99", 99)
    refused(space, "unsupported GNU version", "NVCC_CCBIN", "CXX=", NVCC_CCBIN=str(compiler))
    assert "allow-unsupported" not in space.read("build/build.ninja")


def test_compiler_that_is_not_there(space: Space) -> None:
    outcome = space.compile(CXX="no-such-g++")
    assert outcome.code == 2
    assert "CXX=no-such-g++" in outcome.err


def test_ninja_missing_then_found(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """C11: a failure does not stick, and leaves no module of older sources."""
    from utils.build import builder
    from utils.present.outcome import CannotTell
    from utils.problem.workspace import Workspace

    def missing() -> Path:
        raise CannotTell("ninja was not found")

    space.write("kernels/scale.cu", SCALE_CU + "// compile again\n")
    monkeypatch.setattr(builder, "find_ninja", missing)
    for name in ("TORCH_CUDA_ARCH_LIST", "KERNEL_WORKBENCH_PCH"):
        monkeypatch.setenv(name, space.environment[name])
    with pytest.raises(CannotTell, match="ninja"):
        builder.build(Workspace(space.root))
    assert space.modules == []
    outcome = space.compile()
    assert outcome.code == 0, outcome.text


def test_ninja_beside_the_interpreter_is_found_without_path(space: Space) -> None:
    space.write("kernels/scale.cu", SCALE_CU + "// compile again\n")
    folders = [
        folder
        for folder in os.environ["PATH"].split(":")
        if not Path(folder, "ninja").exists() or Path(folder, "g++").exists()
    ]
    outcome = space.compile(PATH=":".join(folders))
    assert outcome.code == 0, outcome.text


def test_killed_compiler_is_explained_as_memory(light_space: Space, tmp_path: Path) -> None:
    """C14"""
    space = light_space
    real = __import__("shutil").which("nvcc") or "/usr/local/cuda/bin/nvcc"
    home = Path(real).resolve().parent.parent
    fake = tmp_path / "cuda"
    (fake / "bin").mkdir(parents=True)
    (fake / "include").symlink_to(home / "include")
    executable(
        fake / "bin/nvcc",
        f'#!/bin/sh\ncase "$*" in *doomed.cu*) kill -9 $$;; esac\nexec "{Path(real).resolve()}" "$@"\n',
    )
    space.write("kernels/doomed.cu", "__global__ void doomed() {}\n")
    refused(space, "kernels/doomed.cu", "ran out of memory", "MAX_JOBS=1", CUDA_HOME=str(fake))


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_max_jobs_that_is_no_number(space: Space, value: str) -> None:
    space.write("kernels/scale.cu", SCALE_CU + "// compile again\n")
    refused(space, f"MAX_JOBS={value} is not a number of jobs", code=2, MAX_JOBS=value)


def test_failure_is_recorded_as_json(space: Space, tmp_path: Path) -> None:
    space.replace("kernels/scale.cu", "* factor;", "* factor")
    report = tmp_path / "report.json"
    outcome = space.compile("--json", str(report))
    record = json.loads(report.read_text())
    assert outcome.code == record["exit_code"] == 1
    assert record["verdict"] == "FAILED"
    assert record["results"]["module"] is None
    assert record["results"]["failures"][0]["place"] == "kernels/scale.cu:6"
    outcome = space.compile("--json", str(report), TORCH_CUDA_ARCH_LIST="fast")
    record = json.loads(report.read_text())
    assert outcome.code == record["exit_code"] == 2
    assert record["verdict"] == "CANNOT_TELL"
    assert "not an architecture" in record["reasons"][0]
    assert stat.S_ISREG(report.stat().st_mode)
