"""What ptxas, the compilers and the linkers say, read."""

from __future__ import annotations

import pytest

from utils.build import (
    errors,
    link,
    resources,
)

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
