"""The parts of the build that need no compiler: signatures, scanning, ninja's escapes, what compilers say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build_space import ROOT

from utils.build import (
    architectures,
    errors,
    flags,
    functions,
    gpus,
    link,
    ninja_file,
    pch,
    plan,
    resources,
    scan,
    toolchain,
)
from utils.present.outcome import CannotTell

# Signatures on the two sides of a launcher


def differences(declaration: str, definition: str) -> list[str]:
    parsed = functions.parse({"k_binding.cpp": declaration.encode(), "k.cu": definition.encode()})
    return [each.difference for each in functions.mismatches(parsed)]


@pytest.mark.parametrize(
    ("declared", "defined"),
    [
        ("float* x, int n", "float* y, int size"),
        ("float*, int", "float* __restrict__ x, const int n"),
        ("const float* x", "float const* __restrict__ x"),
        ("float* x", "float x[]"),
        ("unsigned n", "unsigned int n"),
        ("unsigned int n", "uint32_t n"),
        ("long long n", "int64_t n"),
        ("long n", "std::int64_t n"),
        ("size_t n", "std::size_t n"),
        ("size_t n", "unsigned long n"),
        ("unsigned long long n", "uint64_t n"),
        ("cudaStream_t s", "CUstream s"),
        ("cudaStream_t s", "struct CUstream_st* s"),
        ("void* s", "cudaStream_t s"),
        ("void* x, const void* y", "float* x, const __half* y"),
        ("half* x, __nv_bfloat16 b", "__half* x, nv_bfloat16 b"),
        ("uint16_t* x", "__half* x"),
        ("struct Params p", "Params p"),
        ("Params* p", "struct Params* p"),
        ("index_t n", "int n"),
        ("REAL* x", "float* x"),
        ("int n = 3", "int n"),
        ("void", ""),
        ("", "void"),
        ("void (*callback)(int)", "void (*f)(int, int)"),
        ("std::array<int, 3> dims", "std::array<int, 3> d"),
    ],
)
def test_honest_pairs_are_not_accused(declared: str, defined: str) -> None:
    assert differences(f'extern "C" void f({declared});', f'extern "C" void f({defined}) {{}}') == []
    assert differences(f'extern "C" {{ void f({declared}); }}', f'extern "C" {{ void f({defined}) {{}} }}') == []


@pytest.mark.parametrize(
    ("declared", "defined", "words"),
    [
        ("float* x, int n", "float* x, int64_t n", "parameter 2 is `int n` in the declaration and `int64_t n`"),
        ("float* x", "double* x", "parameter 1"),
        ("float* x", "float x", "parameter 1"),
        ("float** x", "float* x", "parameter 1"),
        ("float x, int n", "int n, float x", "parameter 1"),
        ("int n, cudaStream_t s", "int n", "only the declaration has `cudaStream_t s`"),
        ("int n", "int n, float eps", "only the definition has `float eps`"),
        ("bool b", "int b", "parameter 1"),
        ("unsigned n", "int n", "parameter 1"),
        ("float x", "double x", "parameter 1"),
        ("__half* x", "__nv_bfloat16* x", "parameter 1"),
        ("float4* x", "float2* x", "parameter 1"),
        ("cudaStream_t s", "cudaEvent_t s", "parameter 1"),
        ("Params* p", "Params p", ""),
        ("", "int n", "only the definition has `int n`"),
    ],
)
def test_certain_differences_are_found(declared: str, defined: str, words: str) -> None:
    found = differences(f'extern "C" void f({declared});', f'extern "C" void f({defined}) {{}}')
    if not words:  # an alias could be anything
        assert found == []
        return
    assert len(found) == 1
    assert words in found[0]


def test_return_types() -> None:
    assert differences('extern "C" int f();', 'extern "C" cudaError_t f() { return cudaSuccess; }') == []
    assert differences('extern "C" void f();', 'extern "C" void f() {}') == []
    (found,) = differences('extern "C" float f();', 'extern "C" void f() {}')
    assert "returns `float`" in found
    (found,) = differences('extern "C" int* f();', 'extern "C" int f() { return 0; }')
    assert "returns" in found


@pytest.mark.parametrize(
    ("declaration", "definition"),
    [
        (
            '#ifdef WIDE\nextern "C" void f(long n);\n#else\nextern "C" void f(int n);\n#endif',
            'extern "C" void f(int n) {}',
        ),
        ('#define f g\nextern "C" void f(int n);', 'extern "C" void f(float n) {}'),
        ('extern "C" void f(int n);', 'namespace { extern "C" void f(float n) {} }'),
        ('extern "C" void f(int n);', "void f(float n) {}"),
        ("void f(int n);", 'extern "C" void f(float n) {}'),
        ('extern "C" void f(int n, ...);', 'extern "C" void f(int n, int m) {}'),
        ('// extern "C" void f(int n);', 'extern "C" void f(float n) {}'),
        ('extern "C" void f(REST);', 'extern "C" void f(float n, int m) {}'),
        ('MACRO(extern "C" void f(int n));', 'extern "C" void f(float n) {}'),
        ('extern "C" void f(int n ARGS);', 'extern "C" void f(int n, int m) {}'),
    ],
)
def test_what_cannot_be_known_is_not_judged(declaration: str, definition: str) -> None:
    if "REST" in declaration:
        declaration = "#define REST float n, int m\n" + declaration
    assert differences(declaration, definition) == []


def test_duplicate_definitions() -> None:
    def names(a: str, b: str) -> list[tuple[str, str]]:
        parsed = functions.parse({"a.cu": a.encode(), "b.cu": b.encode()})
        return [(one.place, two.place) for one, two in functions.duplicate_definitions(parsed)]

    plain = 'extern "C" void f() {}'
    assert names(plain, "\n" + plain) == [("a.cu:1", "b.cu:2")]
    assert names(plain, 'extern "C" void f();') == []
    assert names("static void f() {}", "static void f() {}") == []
    assert names("void f() {}", "void f(int) {}") == []
    assert names('extern "C" inline void f() {}', plain) == []
    assert names('extern "C" __attribute__((weak)) void f() {}', plain) == []
    assert names(f"#if 0\n{plain}\n#endif", plain) == []
    assert names('#define NAME one\nextern "C" void NAME() {}', '#define NAME two\nextern "C" void NAME() {}') == []


# Source text


def test_macro_uses_know_comments_strings_and_conditions() -> None:
    text = """
// M(comment)
/* M(block
   comment) */
const char* s = "M(string)";
auto r = R"x(M(raw))x"; int big = 1'000'000; char c = '"';
#define M(x) x
#ifdef A
M(conditional)
#endif
M(real, f(1, 2));
"""
    found = [(use.arguments, use.line, use.conditional) for use in scan.macro_uses(text, "M")]
    assert found == [("conditional", 9, True), ("real, f(1, 2)", 11, False)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", "types"),
        (
            "#pragma once\n#include <vector>\n#include <torch/csrc/utils/pybind.h>\n#include <torch/types.h>\nint x;",
            "types",
        ),
        ("#include <torch/extension.h>\n", "types"),
        ("#include <torch/types.h>\n", ""),
        (
            "#include <ATen/core/Tensor.h>\n#include <c10/cuda/CUDAGuard.h>\n#include <torch/csrc/utils/pybind.h>\n",
            "tensor",
        ),
        ("#include <ATen/core/Tensor.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ('#include "../binding_registry.h"\n', ""),
        ("#define TORCH_ASSERT_NO_OPERATORS\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("#if X\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n#endif\n", ""),
        ("int x;\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("//#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("", ""),
    ],
)
def test_precompiled_header_only_where_it_changes_nothing(text: str, kind: str) -> None:
    assert pch.fitting(text) == kind


# Flags


def test_bindings_get_the_options_of_gcc_from_gcc_alone() -> None:
    gnu, other = flags.binding_flags(gnu=True), flags.binding_flags(gnu=False)
    assert [each for each in gnu if each.startswith("-O")] == ["-Og"]
    assert [each for each in other if each.startswith("-O")] == ["-O1"]
    assert not {"--param", "-ftree-sra", "-finline-functions-called-once"} & set(other)


# ninja


def test_ninja_escapes() -> None:
    assert ninja_file.escape_path("a b:$c") == "a$ b$:$$c"
    step = ninja_file.Step("out file", ("in $x",), ("cc", "a b", "$y", "it's"), "cc in", ("dep:1",), "d")
    text = ninja_file.text([step], "build")
    assert "build out$ file: step_with_headers in$ $$x | dep$:1" in text
    assert "step_command = cc 'a b' '$$y' 'it'\"'\"'s' > 'out file.log' 2>&1" in text


def test_depfiles_are_read_back() -> None:
    text = "o: a.cu \\\n  dir\\ with\\ space/b.h $$c.h \\\n hash\\#.h\n"
    assert ninja_file.headers_of(text) == ["a.cu", "dir with space/b.h", "$c.h", "hash#.h"]
    assert ninja_file.headers_of("") == []


# ptxas


PTXAS = """\
ptxas info    : 0 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function '_Z1kILi4EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z1kILi4EEvPf
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 4096+16 bytes smem
ptxas info    : Function properties for _Z6helperf
    64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_80'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 360 bytes cmem[0]
"""


def test_resources_are_read_from_ptxas() -> None:
    first, second = resources.parse(PTXAS, "kernels/k.cu")
    assert (first.registers, first.stack, first.spill_stores, first.spill_loads, first.shared) == (40, 16, 16, 12, 4112)
    assert first.architecture == "sm_90a"
    assert first.spills
    assert (second.kernel, second.registers, second.shared, second.spills) == ("plain", 8, 0, False)


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        ("void kernel<float, 4>(float*, int)", "kernel<float, 4>"),
        ("kernel(float*)", "kernel"),
        ("void ns::k<(int)3, ns::T<float> >(ns::T<float>)", "ns::k<(int)3, ns::T<float> >"),
        ("(anonymous namespace)::k(int)", "k"),
        ("void (anonymous namespace)::k<float>(float (*)(int))", "k<float>"),
        ("plain_c", "plain_c"),
    ],
)
def test_short_names(demangled: str, short: str) -> None:
    assert resources.short_name(demangled) == short


# What compilers and linkers say


@pytest.mark.parametrize(
    ("log", "place", "message"),
    [
        (
            'k.cu(3): warning #177-D: unused\nk.cu(7): error: expected a ";"\n  x = 1\n  ^\nk.cu(9): error: more',
            "k.cu:7",
            'expected a ";"',
        ),
        ("a.cpp:3:1: note: x\na.cpp:4:9: error: 'y' was not declared\n", "a.cpp:4", "'y' was not declared"),
        (
            "a.cpp:1:10: fatal error: no.h: No such file or directory\ncompilation terminated.",
            "a.cpp:1",
            "no.h: No such file or directory",
        ),
        ('k.cu(1): catastrophic error: cannot open source file "no.h"', "k.cu:1", 'cannot open source file "no.h"'),
        ("dir with space/k.cu(12): error: bad", "dir with space/k.cu:12", "bad"),
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_70'",
            "",
            "nvcc fatal   : Unsupported gpu architecture 'compute_70'",
        ),
        (
            "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
            "",
            "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        ),
    ],
)
def test_first_error(log: str, place: str, message: str) -> None:
    found = errors.first_error(log)
    assert found is not None
    assert (found.place, found.message) == (place, message)


def test_every_killed_compiler_is_memory() -> None:
    for log in (
        "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
        "virtual memory exhausted: Cannot allocate memory",
    ):
        assert "MAX_JOBS=1" in errors.compile_failure("g++ a.cpp", "a.cpp", log, 1).remedy, log
    assert "MAX_JOBS=1" in errors.compile_failure("g++ a.cpp", "a.cpp", "", 137).remedy


def test_error_inside_a_foreign_header_names_the_line_of_ours() -> None:
    log = (
        "In file included from kernels/a_binding.cpp:2:\n"
        "/opt/torch/include/x.h: In instantiation of 'f':\n"
        "kernels/a_binding.cpp:17:5:   required from here\n"
        "/opt/torch/include/x.h:40:3: error: static assertion failed: no\n"
    )
    found = errors.first_error(log)
    assert found is not None
    assert "kernels/a_binding.cpp:" in found.detail


BFD = """\
/usr/bin/ld: build/obj/kernels/a_binding.cpp.o: in function `call':
a_binding.cpp:(.text+0x5): warning: undefined reference to `a_launcher'
/usr/bin/ld: a_binding.cpp:(.text+0x9): warning: undefined reference to `PyType_IsSubtype'
/usr/bin/ld: build/obj/kernels/b.cpp.o:(.data.rel.ro+0x10): warning: undefined reference to `at::nothing(double)'
/usr/bin/ld: build/obj/kernels/b.cpp.o: (.text+0x1): warning: undefined reference to `_Py_Dealloc'
"""
GOLD = """\
build/obj/kernels/a_binding.cpp.o:a_binding.cpp:function call: warning: undefined reference to 'a_launcher'
build/obj/kernels/a_binding.cpp.o:a_binding.cpp:function call: warning: undefined reference to 'PyType_IsSubtype'
build/obj/kernels/b.cpp.o:b.cpp:vtable for W: warning: undefined reference to 'at::nothing(double)'
build/obj/kernels/c.cpp.o:c.cpp:function again: warning: undefined reference to 'a_launcher'
"""
LLD = """\
ld.lld: warning: undefined symbol: a_launcher
>>> referenced by a_binding.cpp
>>>               build/obj/kernels/a_binding.cpp.o:(call)
>>> referenced by c.cpp
>>>               build/obj/kernels/c.cpp.o:(again)

ld.lld: warning: undefined symbol: PyExc_ImportError
>>> referenced by c.cpp
>>>               build/obj/kernels/c.cpp.o:(again)

ld.lld: warning: undefined symbol: at::nothing(double)
>>> referenced by b.cpp
>>>               build/obj/kernels/b.cpp.o:(vtable for W)
"""


@pytest.mark.parametrize("log", [BFD, GOLD, LLD], ids=["bfd", "gold", "lld"])
def test_undefined_symbols_of_every_linker(log: str) -> None:
    assert [(each.symbol, each.object) for each in link.undefined_symbols(log)] == [
        ("a_launcher", "build/obj/kernels/a_binding.cpp"),
        ("at::nothing(double)", "build/obj/kernels/b.cpp"),
    ]


def test_gold_naming_a_source_line_does_not_name_the_object_of_another() -> None:
    log = GOLD.splitlines()[0] + "\n/home/me/ws/kernels/b.cpp:2: warning: undefined reference to 'other(float)'\n"
    assert [(each.symbol, each.object) for each in link.undefined_symbols(log)][1] == ("other(float)", "")


BFD_TWICE = """\
/usr/bin/ld: build/obj/kernels/b.cpp.o: in function `twin':
b.cpp:(.text+0x0): multiple definition of `twin'; build/obj/kernels/a.cu.o:a.cpp:(.text+0x0): first defined here
/usr/bin/ld: build/obj/kernels/c.cpp.o: in function `dup(int)':
c.cpp:3: multiple definition of `dup(int)'; build/obj/kernels/b.cpp.o:b.cpp:(.text+0x16): first defined here
/usr/bin/ld: build/obj/kernels/a.cu.o: in function `call':
a.cpp:(.text+0xf): warning: undefined reference to `PyLong_FromLong'
collect2: error: ld returned 1 exit status
"""
GOLD_TWICE = """\
/usr/bin/ld.gold: error: build/obj/kernels/b.cpp.o: multiple definition of 'twin'
/usr/bin/ld.gold: build/obj/kernels/a.cu.o: previous definition here
/usr/bin/ld.gold: error: build/obj/kernels/c.cpp.o: multiple definition of 'dup(int)'
/usr/bin/ld.gold: build/obj/kernels/b.cpp.o: previous definition here
build/obj/kernels/a.cu.o:a.cpp:function call: warning: undefined reference to 'PyLong_FromLong'
collect2: error: ld returned 1 exit status
"""
LLD_TWICE = """\
ld.lld: error: duplicate symbol: twin
>>> defined at a.cpp
>>>            build/obj/kernels/a.cu.o:(twin)
>>> defined at b.cpp
>>>            build/obj/kernels/b.cpp.o:(.text+0x0)

ld.lld: error: duplicate symbol: dup(int)
>>> defined at b.cpp
>>>            build/obj/kernels/b.cpp.o:(dup(int))
>>> defined at c.cpp:3 (/home/me/ws/kernels/c.cpp:3)
>>>            build/obj/kernels/c.cpp.o:(.text+0x16)

ld.lld: warning: undefined symbol: PyLong_FromLong
>>> referenced by a.cpp
>>>               build/obj/kernels/a.cu.o:(call)
collect2: error: ld returned 1 exit status
"""


@pytest.mark.parametrize("log", [BFD_TWICE, GOLD_TWICE, LLD_TWICE], ids=["bfd", "gold", "lld"])
def test_doubled_symbols_of_every_linker(log: str) -> None:
    found = {symbol: sorted(objects) for symbol, objects in link.doubled_symbols(log).items()}
    assert found == {
        "twin": ["build/obj/kernels/a.cu", "build/obj/kernels/b.cpp"],
        "dup(int)": ["build/obj/kernels/b.cpp", "build/obj/kernels/c.cpp"],
    }
    assert "twin is defined in more than one file" in link.link_failures(log, [], [])[0].message
    assert all("build/obj" not in each.message for each in link.link_failures(log, [], []))


# Tools


@pytest.mark.parametrize("text", ["0", "-2", "two", "1e3"])
def test_jobs_that_are_none(text: str) -> None:
    with pytest.raises(CannotTell, match="MAX_JOBS"):
        flags.jobs({"MAX_JOBS": text})


def test_jobs() -> None:
    assert flags.jobs({"MAX_JOBS": " 3 "}) == 3
    assert flags.jobs({}) >= 1


def nvcc(version: str) -> toolchain.Nvcc:
    return toolchain.Nvcc(Path("/opt/cuda/bin/nvcc"), Path("/opt/cuda"), "CUDA_HOME", version, ())


def torch(cuda: str) -> toolchain.Torch:
    return toolchain.Torch(Path("/py"), Path("/site/torch"), "2.11.0", cuda, Path("/inc"), ".so")


def test_cuda_versions() -> None:
    assert toolchain.check_versions(nvcc("13.0.88"), torch("13.0")) is None
    warning = toolchain.check_versions(nvcc("13.1.5"), torch("13.0"))
    assert warning is not None
    assert "13.1.5" in warning
    with pytest.raises(CannotTell, match=r"12\.4.*13\.0"):
        toolchain.check_versions(nvcc("12.4.1"), torch("13.0"))


@pytest.mark.parametrize(
    ("version_py", "words"),
    [
        ("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n", "built without CUDA"),
        ("__version__ = '2.8.1+cu128'\ncuda: Optional[str] = '12.8'\n", "too old"),
        ("__version__ = '1.13.0'\ncuda = '11.7'\n", "too old"),
    ],
)
def test_torch_that_is_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version_py: str, words: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "torch/version.py").write_text(version_py)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(CannotTell, match=words):
        toolchain.find_python_torch()


def test_nvcc_of_the_wheels_is_found_where_there_is_no_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "nvidia/cu13"
    (wheel / "bin").mkdir(parents=True)
    (wheel / "include").mkdir()
    (wheel / "include/cuda_runtime.h").write_text("")
    (wheel / "bin/nvcc").write_text("#!/bin/sh\n")
    (wheel / "bin/nvcc").chmod(0o755)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "")
    here = toolchain.Torch(Path("/py"), tmp_path / "torch", "2.11.0", "13.0", Path("/inc"), ".so")
    candidates = toolchain._nvcc_candidates(here)
    assert (wheel / "bin/nvcc", "the toolkit's wheels") in candidates
    assert candidates[-1][0] == wheel / "bin/nvcc"


def test_cxx_with_a_launcher_gives_nvcc_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ccache").write_text("#!/bin/sh\n")
    (tmp_path / "ccache").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = toolchain.find_host_compiler({"CXX": "ccache g++"})
    assert found.command == ("ccache", "g++")
    assert found.for_nvcc == "g++"
    with pytest.raises(CannotTell, match="CXX=nothing-there"):
        toolchain.find_host_compiler({"CXX": "nothing-there"})


def test_ninja_is_looked_for_beside_the_interpreter_and_in_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C11: an interpreter called by its path alone has no PATH to its tools."""

    def ninja_in(folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "ninja").write_text("#!/bin/sh\n")
        (folder / "ninja").chmod(0o755)
        return folder / "ninja"

    package = tmp_path / "site/ninja"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain.sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: str(tmp_path / "scripts"))
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotTell, match="pip install ninja"):
        toolchain.find_ninja()
    inside = ninja_in(package / "data/bin")
    spec = type("Spec", (), {"origin": str(package / "__init__.py")})
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: spec)
    assert toolchain.find_ninja() == inside
    beside = ninja_in(tmp_path / "bin")
    assert toolchain.find_ninja() == beside
    # Not the one that this shell's PATH leads to: another version would compile everything again.
    monkeypatch.setenv("PATH", str(ninja_in(tmp_path / "system").parent))
    assert toolchain.find_ninja() == beside


def test_cuda_home_without_nvcc_is_told(tmp_path: Path) -> None:
    warning = toolchain.idle_cuda_home({"CUDA_HOME": str(tmp_path)})
    assert warning is not None
    assert str(tmp_path) in warning
    assert toolchain.idle_cuda_home({}) is None


# GPUs


def test_build_that_does_not_cover_a_visible_gpu_is_warned_of() -> None:
    """C53"""
    built = architectures.parse_arch_list("8.0")
    (warning,) = plan.coverage_warnings(built, [(9, 0)])
    assert "built for sm_80, but a visible GPU is sm_90" in warning
    assert "TORCH_CUDA_ARCH_LIST=9.0" in warning
    assert plan.coverage_warnings(architectures.parse_arch_list("8.0+PTX"), [(9, 0)]) == []
    assert plan.coverage_warnings(built, []) == []


FAKE_NVML = r"""
#include <stdio.h>
#include <stdint.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
    *handle = (void*)(0x700000000000 + index);
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
    *major = (uintptr_t)handle == 0x700000000000 ? 9 : 8;
    *minor = (uintptr_t)handle == 0x700000000000 ? 0 : 6;
    return 0;
}
static int id(void* handle) { return (int)((uintptr_t)handle & 1); }
int nvmlDeviceGetName(void* handle, char* name, unsigned size) { return snprintf(name, size, "Fake %d", id(handle)); }
int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned size) { return snprintf(uuid, size, "GPU-%d", id(handle)); }
"""
FAKE_DRIVER = r"""
#include <stdio.h>
int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "Driver %d", device); return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return device; }
"""


@pytest.mark.parametrize(
    ("source", "library", "function", "expected"),
    [
        (FAKE_NVML, "libnvidia-ml.so.1", "_from_nvml", [("Fake 0", (9, 0), "GPU-0"), ("Fake 1", (8, 6), "GPU-1")]),
        (FAKE_DRIVER, "libcuda.so.1", "_from_driver", [("Driver 0", (9, 0), "")]),
    ],
)
def test_gpus_are_asked_for_through_the_libraries(
    tmp_path: Path, source: str, library: str, function: str, expected: list[tuple[str, tuple[int, int], str]]
) -> None:
    """Against libraries with the entry points of the real ones, 64-bit handles included."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "fake.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "fake.c", "-o", library], cwd=tmp_path, check=True)
    program = f"import utils.build.gpus as g; print([(x.name, x.capability, x.uuid) for x in g.{function}()])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == repr(expected), done.stderr


def test_nvidia_smi_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA H200, 9.0, GPU-1'\necho 'broken'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert gpus._from_nvidia_smi() == [gpus.Gpu("NVIDIA H200", (9, 0), "GPU-1")]
