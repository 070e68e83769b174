"""The rewriter: what it must recognise, what it must leave alone, and what it must refuse."""

from __future__ import annotations

import re

import pytest

from utils.present.outcome import CannotTell
from utils.sim.rewriter import Kernels, rewrite


def rewritten(source: str) -> str:
    kernels = Kernels()
    kernels.scan(source.encode())
    return rewrite(source.encode(), "file.cu", kernels).decode()


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_every_newline_stays_where_it_was() -> None:
    source = (
        "__global__ void k(int* p) {\n  __shared__ float s[4],\n     r[2];\n"
        '  asm volatile("bar.sync 0;"\n    :::\n    "memory");\n}\n'
        "void f(int* p) {\n  k<<<1,\n      32>>>(\n    p);\n}\n"
    )
    out = rewritten(source)
    assert out.startswith('#line 1 "file.cu"\n')
    assert out.count("\n") == source.count("\n") + 1
    assert out.splitlines()[11 + 1] == "}"


@pytest.mark.parametrize(
    "source",
    [
        "template <int B> __global__ void k(float* p) {}\n"
        "void f(float* p) { k<256><<<dim3(1, 2), 256, 0, nullptr>>>(p); }",
        "void f(void (*k)(int), int c) { switch (c) { case 0: k<<<1, 2>>>(3); break; default: k<<<2, 2>>>(4); } }",
        "#define GO(K, B) \\\n  do { \\\n    K<B><<<1, B>>>(p); \\\n  } while (0)\n",
        "void f() { auto g = [&] { ns::k<a<b>, (c > d)><<<g1, b1>>>(x); }; }",
        'void f() { DISPATCH(t, "name", ([&] { k<scalar_t><<<g, b, 0, s>>>(p.data_ptr<scalar_t>()); })); }',
    ],
)
def test_launches_are_found_wherever_they_stand(source: str) -> None:
    out = rewritten(source)
    assert "<<<" not in out
    assert out.count("::sim::launcher(") == source.count("<<<")


def test_a_string_or_comment_is_no_launch() -> None:
    source = '// k<<<1, 2>>>(x)\nconst char* s = "k<<<1, 2>>>(x)";\n/* __shared__ int a[2]; */\n'
    assert rewritten(source) == '#line 1 "file.cu"\n' + source


def test_shared_declarations_become_references_of_their_own_type() -> None:
    out = one_line(
        rewritten(
            "template <typename T> __global__ void k() {"
            " __shared__ __align__(16) T tile[32][33], one; extern __shared__ float d[]; }"
        )
    )
    assert "typedef T sim_T_tile[32][33];" in out and "sim_T_tile& tile =" in out
    assert "typedef T sim_T_one;" in out
    assert "typedef float sim_T_d[];" in out and "::sim::dynamic_shared()" in out
    assert "__shared__" not in out


def test_dynamic_shared_memory_at_file_scope() -> None:
    out = rewritten("extern __shared__ float pool[];\n__global__ void k() { pool[0] = 1; }\n")
    assert "#define pool (sim_get_pool())" in out
    assert '#line 1 "file.cu"\n\n__global__' in out or '#line 1 "file.cu"\n' in out


def test_spinning_loops_let_others_run() -> None:
    out = rewritten("__global__ void k(volatile int* p) { while (*p == 0) {} while (p[1]); for (;;) { p[2] = 1; } }")
    assert out.count("::sim::breathe()") == 2


def test_launch_bounds_are_checked() -> None:
    assert "::sim::launch_bounds(128);" in rewritten(
        "__global__ void __launch_bounds__(128, 2) k(int* p) { p[0] = 1; }"
    )


def test_a_kernel_says_first_which_cluster_it_is_for() -> None:
    text = rewritten("__global__ void __cluster_dims__(2, N) __launch_bounds__(64) k(int* p) { p[0] = 1; }")
    assert "{ ::sim::kernel_cluster(2, N, 1, __FILE__, __LINE__); ::sim::launch_bounds(64);" in text
    macro = "#define K(NAME) __global__ void __cluster_dims__(4) NAME(int* p) { p[0] = 1; }\n"
    assert "::sim::kernel_cluster(4, 1, 1, " in rewritten(macro)
    assert "kernel_cluster" not in rewritten("__global__ void __cluster_dims__(2, 1, 1) k(int* p);\n")


def test_null_given_to_a_pointer_parameter() -> None:
    out = rewritten("__global__ void k(int* p, int n) {}\nvoid f() { k<<<1, 1>>>(0, 0); k<<<1, 1>>>(NULL, 3); }")
    assert out.count("::sim::LiteralZero{}") == 3


def test_ptx_that_is_not_simulated_stops_by_name() -> None:
    out = rewritten(
        '__device__ void f(unsigned long long d) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }'
    )
    assert '::sim::unsupported("PTX `wgmma.fence.sync.aligned`", __FILE__, __LINE__)' in out


WAIT = r"{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"


def test_labels_of_ptx_are_the_statements_own() -> None:
    code = WAIT + r"@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}"
    source = f'__device__ void wait(unsigned at) {{ asm volatile("{code}" ::"r"(at), "r"(0) : "memory"); }}'
    out = rewritten(source)
    assert "do { __label__ sim_l0, sim_l1;" in out and "unsupported" not in out
    # No jump passes over an initialisation.
    assert out.index("bool sim_r0{};") < out.index("sim_l0:;") < out.index("{ goto sim_l1; } goto sim_l0; sim_l1:;")


def test_a_label_that_is_missing_or_there_twice_is_not_simulated() -> None:
    for code in (WAIT + "@!P1 bra ELSEWHERE; }", WAIT + "LAB_WAIT: @!P1 bra LAB_WAIT; }"):
        assert "::sim::unsupported(" in rewritten(f'__device__ void f() {{ asm volatile("{code}" ::"r"(0), "r"(0)); }}')


def test_ptx_of_a_macro_may_be_several_literals() -> None:
    out = rewritten(
        '#define FENCE \\\n    asm volatile( \\\n        "fence.proxy.async" \\\n        ";" ::: "memory")\n'
    )
    assert "::sim::proxy_fence();" in out and out.count("\\\n") == 3


@pytest.mark.parametrize(
    "code",
    [
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 16, [%2], 3;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 16;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];",
        "fence.proxy.tensormap::generic.release.gpu;",
    ],
)
def test_copies_and_mbarriers_that_are_not_simulated_stop_by_name(code: str) -> None:
    out = rewritten(f'__device__ void f(int a) {{ asm volatile("{code}" ::"r"(a), "r"(a), "r"(a)); }}')
    assert f'::sim::unsupported("PTX `{code.partition(" ")[0].rstrip(";")}' in out


def test_a_cast_of_a_kernel_to_void_keeps_its_type() -> None:
    out = rewritten(
        "__global__ void k(int*) {}\nvoid f(void** a) { cudaLaunchCooperativeKernel((void*)k, 1, 32, a, 0, 0); }"
    )
    assert "cudaLaunchCooperativeKernel(k, 1, 32" in out


def test_a_launch_it_cannot_read_is_refused_by_line() -> None:
    with pytest.raises(CannotTell, match=r"file\.cu:2: the simulator does not understand this kernel launch"):
        rewritten("__global__ void k() {}\nvoid f() { k<<<1 2 }")
