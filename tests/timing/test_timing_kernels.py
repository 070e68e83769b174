"""The kernel table from traces, honest and not, and Nsight Compute's CSV in sentences."""

import pytest

from utils.timing import ncu
from utils.timing.kernels import attribute_bytes, clean_name, family, from_trace, table

ARGS = {
    "grid": [4, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 1024,
    "est. achieved occupancy %": 50,
}  # fmt: skip
TRACE = {
    "traceEvents": [
        {"cat": "kernel", "name": "void norm<256>(float*, int)", "dur": 10.0,
         "args": ARGS},
        {"cat": "kernel", "name": "void norm<256>(float*, int)", "dur": 14.0,
         "args": ARGS},
        {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "dur": 1.0, "args": {"bytes": 1000}},
        {"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "dur": 900.0, "args": {}},
        {"cat": "cpu_op", "name": "aten::add", "dur": 50.0, "args": {}},
    ]
}  # fmt: skip


def test_equal_launches_become_one_row_and_waiting_is_no_kernel():
    rows = table(from_trace(TRACE))
    assert [(row.name, row.calls) for row in rows] == [("norm<256>", 2), ("Memcpy DtoD (Device -> Device)", 1)]
    assert rows[0].ms == pytest.approx(0.024)
    assert rows[0].share == pytest.approx(24 / 25)
    assert (rows[0].registers, rows[0].shared_bytes, rows[0].occupancy) == (32, 1024, 0.5)
    assert rows[1].bytes_per_second == pytest.approx(2 * 1000 / 1e-6)
    assert sum(row.share for row in rows) == pytest.approx(1.0)


def test_nothing_recorded_is_no_row():
    assert from_trace({"traceEvents": []}) == []
    assert from_trace({}) == []
    assert table([]) == []


@pytest.mark.parametrize("events", [
    [None, 5, "x", [], {"us": "12"}, {"us": float("nan")}, {"us": -1.0, "name": "k"}, {"us": True}],
    [{"us": float("inf"), "name": "k"}],
])  # fmt: skip
def test_what_is_no_event_is_dropped(events):
    assert table(events) == []


def test_hostile_events_are_bounded():
    rows = table(
        [
            {
                "us": 1.0,
                "name": "\x1b[31m" + "<" * 5000,
                "registers": -3,
                "shared_bytes": 2**70,
                "occupancy": 9e9,
                "grid": "x",
                "calls": "many",
            }
        ]
    )
    (row,) = rows
    assert len(row.name) <= 160
    assert "\x1b" not in row.name
    assert (row.registers, row.shared_bytes, row.grid, row.calls) == (None, None, "", 1)
    assert row.occupancy == 1.0
    assert len(table([{"us": 1.0, "name": f"kernel{n}"} for n in range(1000)])) == 200


@pytest.mark.parametrize("name, expected", [
    ("void at::native::vectorized_elementwise_kernel<4, F>(int)", "torch"),
    ("triton_poi_fused_add_0", "inductor or triton"),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", "cuBLAS"),
    ("ampere_sgemm_128x64_tn", "cuBLAS"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x128>(Params)", "cuBLAS"),
    ("sm90_xmma_fprop_implicit_gemm_tf32", "cuDNN"),
    ("void cudnn::ops::nchwToNhwcKernel<float>(int)", "cuDNN"),
    ("void cub::DeviceScanKernel<P>()", "CUB or Thrust"),
    ("Memset (Device)", "fill"),
    ("layernorm_rows<256, 4>", "own"),
    ("my_softmax", "own"),
])  # fmt: skip
def test_families_by_name(name, expected):
    assert family(name) == expected


def test_foreign_means_neither_own_nor_an_allowed_library():
    rows = table(
        [
            {"us": 1.0, "name": n}
            for n in ("my_kernel", "ampere_sgemm_1", "triton_poi_fused_0", "void at::native::add()")
        ]
    )
    assert {row.name: row.foreign for row in rows} == {
        "my_kernel": False, "ampere_sgemm_1": False, "triton_poi_fused_0": True, "at::native::add": True,
    }  # fmt: skip


def test_names_keep_template_arguments_and_lose_parameter_lists():
    assert clean_name("void f<(int)4, g(int)>(float*, int)") == "f<(int)4, g(int)>"
    assert clean_name("plain") == "plain"
    assert clean_name("()") == "()"


def test_necessary_bytes_are_credited_to_an_only_kernel_and_to_no_other():
    one = table([{"us": 100.0, "name": "k"}, {"us": 1.0, "name": "Memset (Device)"}])
    assert attribute_bytes(one, 4_000_000)[0].bytes_per_second == pytest.approx(4e10)
    two = table([{"us": 100.0, "name": "k"}, {"us": 1.0, "name": "j"}])
    assert all(row.bytes_per_second is None for row in attribute_bytes(two, 4_000_000))


CSV = """==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Context","Metric Name","Metric Unit","Metric Value"
"0","1","void norm<256>(float*)","1","gpu__time_duration.sum","ns","24,000"
"0","1","void norm<256>(float*)","1","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","%","88.5"
"0","1","void norm<256>(float*)","1","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","30.1"
"1","1","gemm","1","gpu__time_duration.sum","ns","100000"
"1","1","gemm","1","launch__registers_per_thread","register/thread","n/a"
==PROF== Disconnected
"""


def test_ncu_csv_is_read_by_launch():
    first, second = ncu.parse(CSV.splitlines())
    assert (first["name"], first["ms"]) == ("norm<256>", pytest.approx(0.024))
    assert second["metrics"] == {"gpu__time_duration.sum": 100000.0}
    assert ncu.parse(["not csv at all", ""]) == []


def test_ncu_sentences_say_what_bounds_a_kernel():
    memory = ncu.sentences({ncu._DRAM_SHARE: 90.0, ncu._SM_SHARE: 20.0, ncu._DRAM: 4.2e12})
    assert memory == [
        "bound by memory: DRAM at 90 % of its peak (4.2 TB/s), SMs at 20 %; close to the limit, only fewer bytes help"
    ]
    assert ncu.sentences({ncu._DRAM_SHARE: 10.0, ncu._SM_SHARE: 80.0})[0].startswith("bound by computation")
    assert ncu.sentences({ncu._DRAM_SHARE: 10.0, ncu._SM_SHARE: 12.0})[0].startswith("bound by latency")
    assert ncu.sentences({}) == []


def test_ncu_sentences_name_the_limiter_conflicts_and_uncoalesced_access():
    found = ncu.sentences({
        ncu._ACTIVE: 24.0, ncu._THEORY: 25.0, ncu._REGISTERS: 128.0, ncu._CONFLICTS: 400.0, ncu._WAVEFRONTS: 1000.0,
        ncu._LOADS: 12.5,
        ncu._STORES: 100.0, "launch__occupancy_limit_registers": 2.0, "launch__occupancy_limit_shared_mem": 8.0,
    })  # fmt: skip
    assert found == [
        "occupancy 24 % of 25 % possible, limited by registers, 128 registers per thread",
        "bank conflicts cost 40 % of shared-memory wavefronts; pad or swizzle the layout",
        "global loads use 12 % of each 32-byte sector; neighbouring threads should touch neighbouring addresses",
    ]


def test_ncu_without_permission_says_what_to_do():
    assert "--no-sandbox" in ncu._reason("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    assert "some reason" in ncu._reason("==ERROR== some reason")
