"""The signatures on the two sides of a launcher, compared from the sources."""

from __future__ import annotations

import pytest

from utils.build import (
    functions,
)


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
