"""Counting from the reference on meta tensors, and the bound that follows."""

import json

import pytest
import torch
from torch import nn

from utils.timing import limits
from utils.timing.limits import Rates, limit
from utils.timing.work import Work, count

RATES = Rates(copy=4e12, matrix={"fp32": 5e13, "tf32": 4e14}, measured_at="2026-01-02", device="test")


class Module(nn.Module):
    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def test_matmul_is_exact_and_bytes_count_once():
    work = count(Module(lambda self, a, b: a @ b), [torch.rand(64, 128), torch.rand(128, 32)])
    assert work.matrix_flop == 2 * 64 * 128 * 32
    assert work.bytes_in == 4 * (64 * 128 + 128 * 32)
    assert work.bytes_out == 4 * 64 * 32
    assert work.bytes_parameters == 0
    assert work.other_flop == 0


def test_convolution_by_the_textbook():
    work = count(nn.Conv2d(3, 8, 3, padding=1, bias=False), [torch.rand(2, 3, 16, 16)])
    assert work.matrix_flop == 2 * (2 * 8 * 16 * 16) * (3 * 3 * 3)
    assert set(work.matrix_by_op) == {"convolution"}


def test_attention_counts_both_products():
    model = Module(lambda self, q, k, v: nn.functional.scaled_dot_product_attention(q, k, v))
    assert count(model, [torch.rand(2, 4, 128, 64)] * 3).matrix_flop == 2 * 2 * (2 * 4 * 128 * 128 * 64)


def test_lstm_counts_its_gates():
    steps, batch, inside, hidden = 7, 3, 10, 16
    work = count(nn.LSTM(inside, hidden, batch_first=True), [torch.rand(batch, steps, inside)])
    assert work.matrix_flop == 2 * steps * batch * 4 * hidden * (inside + hidden)


def test_unused_parameters_and_inputs_do_not_count():
    model = Module(lambda self, x, y: self.used(x), used=nn.Linear(8, 8), unused=nn.Linear(1000, 1000))
    work = count(model, [torch.rand(4, 8), torch.rand(10_000)])
    assert work.bytes_parameters == 4 * (64 + 8)
    assert work.bytes_in == 4 * 32


def test_tied_weights_count_once():
    layer = nn.Linear(16, 16, bias=False)
    work = count(Module(lambda self, x: self.b(self.a(x)), a=layer, b=layer), [torch.rand(2, 16)])
    assert work.bytes_parameters == 4 * 256


def test_an_embedding_counts_gathered_rows():
    work = count(nn.Embedding(100_000, 8), [torch.randint(0, 100_000, (5,))])
    assert work.bytes_parameters == 5 * 8 * 4
    assert work.notes.count("an embedding counts the rows it gathers, not the table") == 1


def test_an_expanded_input_counts_what_it_stores():
    work = count(nn.ReLU(), [torch.rand(1, 16).expand(1000, 16)])
    assert work.bytes_in == 64
    assert work.bytes_out == 64_000


def test_a_view_as_output_moves_nothing_more():
    work = count(Module(lambda self, x: (x + 1, x.t())), [torch.rand(4, 8)])
    assert work.bytes_out == 4 * 32


def test_other_operations_are_estimated_and_said_so():
    work = count(Module(lambda self, x: torch.exp(x) + 1), [torch.rand(100)])
    assert work.other_flop == 100 * 8 + 100
    assert any("estimated" in note for note in work.notes)


def test_nested_inputs_and_outputs():
    model = Module(lambda self, pair, scale: {"sum": [pair[0] + pair[1] * scale]})
    work = count(model, [(torch.rand(8), torch.rand(8)), 2.0])
    assert (work.bytes_in, work.bytes_out) == (64, 32)


def test_control_flow_on_data_is_a_sentence():
    said = count(Module(lambda self, x: x if x.sum().item() > 0 else -x), [torch.rand(2)])
    assert isinstance(said, str)
    assert "meta" in said


def test_the_model_is_left_as_it_was():
    model = nn.BatchNorm2d(4).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    count(model, [torch.rand(2, 4, 8, 8)])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(value.device.type == "cpu" for value in model.state_dict().values())


def work(**changes):
    return Work(
        **{**dict.fromkeys(("matrix_flop", "other_flop", "bytes_in", "bytes_parameters", "bytes_out"), 0), **changes},
        matrix_by_op={},
    )


def test_memory_bound():
    bound = limit(work(bytes_in=2_000_000_000, bytes_out=2_000_000_000, other_flop=10), RATES, "fp32")
    assert (bound.kind, bound.ms) == ("memory", pytest.approx(1.0))
    assert bound.reached(2.0) == pytest.approx(0.5)


def test_matrix_bound_depends_on_the_precision():
    heavy = work(matrix_flop=4 * 10**11, bytes_in=1000)
    assert limit(heavy, RATES, "tf32").ms == pytest.approx(1.0)
    assert limit(heavy, RATES, "fp32").ms == pytest.approx(8.0)
    assert limit(heavy, RATES, "fp32").kind == "matrix"


def test_a_tiny_problem_is_latency():
    assert limit(work(bytes_in=1024), RATES, "fp32").kind == "latency"


def test_an_unmeasured_rate_is_a_sentence_only_where_it_matters():
    assert isinstance(limit(work(matrix_flop=10), RATES, "bf16"), str)
    assert not isinstance(limit(work(bytes_in=10), RATES, "bf16"), str)


def test_estimates_that_decide_are_marked():
    bound = limit(work(other_flop=5 * 10**11, bytes_in=10), RATES, "fp32")
    assert bound.kind == "other"
    assert any("order of magnitude" in caveat for caveat in bound.caveats)


KEY = {"device": "GPU 1", "driver": "9.9", "torch": "2.11.0+cu130"}


def test_rates_are_measured_once_per_device_and_software(tmp_path):
    taken = []

    def take():
        taken.append(1)
        return RATES

    assert limits.cached(KEY, take, tmp_path) == (RATES, False)
    assert limits.cached(KEY, take, tmp_path) == (RATES, True)
    assert len(taken) == 1
    limits.cached({**KEY, "driver": "10.0"}, take, tmp_path)
    assert len(taken) == 2


@pytest.mark.parametrize(
    "spoilt", ["", "{", "[]", json.dumps({"format": 1, "key": KEY, "rates": {"copy": 0}}), json.dumps({"format": 0})]
)
def test_a_spoilt_cache_is_measured_again(tmp_path, spoilt):
    limits.cached(KEY, lambda: RATES, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(spoilt)
    assert limits.cached(KEY, lambda: RATES, tmp_path) == (RATES, False)
    assert limits.cached(KEY, lambda: RATES, tmp_path) == (RATES, True)


def test_a_read_only_cache_is_no_failure(tmp_path):
    assert limits.cached(KEY, lambda: RATES, tmp_path / "missing") == (RATES, False)
