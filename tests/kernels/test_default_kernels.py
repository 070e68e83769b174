"""Every binding of the root workspace on a GPU, against the same formula in fp64."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from utils.problem.workspace import ROOT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU in this machine"),
]

# Unit roundoff of a product of two rounded operands. TF32 keeps 10 bits of mantissa; the tensor cores truncate what
# they are given, which costs 2^-10 per operand. fp32 rounds each of k additions and products by 2^-24.
TF32_PRODUCT = 2.0**-9
FP32_ROUNDOFF = 2.0**-24
# cuBLASLt does not say how it computes tanh inside an epilogue: the hardware's tanh.approx is good to 2^-11.
FUSED_TANH = 2.0**-10

LAYER_NORM_CONFIGS = range(4)
LINEAR_CONFIGS = range(5)
PATCH_EMBED_CONFIGS = range(4)


@pytest.fixture(scope="module")
def ext():
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return pytest.importorskip("cuda_extension", reason="the extension is not built: bash utils/compile.sh")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def misaligned(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy that starts 4 bytes after a 16-byte boundary."""
    buffer = torch.empty(tensor.numel() + 1, device=tensor.device, dtype=tensor.dtype)
    view = buffer[1:].view(tensor.shape)
    view.copy_(tensor)
    assert view.is_contiguous() and view.data_ptr() % 16 == 4
    return view


def assert_within(actual: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | float) -> None:
    """|actual - expected| <= bound everywhere; a failure names the worst element."""
    assert actual.shape == expected.shape
    assert actual.dtype == torch.float32
    error = (actual.double() - expected).abs()
    bad = ~(error <= bound)  # NaN is bad
    if bad.any():
        excess = torch.where(bad, (error / bound).nan_to_num(nan=float("inf")), torch.zeros_like(error))
        at = [int(i) for i in torch.unravel_index(excess.argmax(), excess.shape)]
        index = tuple(at)
        limit = bound[index].item() if isinstance(bound, torch.Tensor) else bound
        pytest.fail(
            f"{int(bad.sum())} of {bad.numel()} elements are off; worst at {at}: "
            f"expected {expected[index].item():.9g}, got {actual[index].item():.9g}, allowed error {limit:.3g}"
        )


def layer_norm_reference(x, weight, bias, eps):
    x = x.double()
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + eps).sqrt() * weight.double() + bias.double()


def product_bound(x, weight, *, tf32: bool):
    """Largest rounding error of x W^T, element by element: every term off by the roundoff, sums by k fp32 roundings."""
    terms = x.double().abs() @ weight.double().abs().T
    return terms * ((TF32_PRODUCT if tf32 else 0.0) + 2 * x.shape[-1] * FP32_ROUNDOFF) + 1e-6


def gelu_reference(u):
    return u / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (u + 0.044715 * u**3)))


# --- layer_norm -------------------------------------------------------------------------------------------------------


# Around every switch between kernels (256, 512, 768, 1024 | 2048, 4096, 8192 | longer), and odd ones between.
ROW_LENGTHS = [1, 2, 3, 4, 19, 63, 64, 111, 255, 256, 257, 260, 384, 512, 516, 768, 772, 999, 1024]
ROW_LENGTHS += [1025, 1028, 2048, 2049, 2052, 4096, 4100, 5001, 8191, 8192, 8193, 8196, 20000, 20001]


@pytest.mark.parametrize("n", ROW_LENGTHS)
def test_layer_norm_sizes(ext, n):
    weight, bias = 1 + randn(n), randn(n)
    for rows in (1, 7, 130):
        x = 2 * randn(rows, n) + 3
        expected = layer_norm_reference(x, weight, bias, 1e-5)
        for config in LAYER_NORM_CONFIGS:
            assert_within(ext.layer_norm(x, weight, bias, 1e-5, config), expected, 2e-5 * (1 + expected.abs()))


def test_layer_norm_does_not_cancel(ext):
    """Mean 1000, deviation 1: E[x^2] - mean^2 in fp32 would lose the variance altogether."""
    for n in (768, 769, 4096, 20000):
        x = 1000 + randn(33, n)
        weight, bias = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
        expected = layer_norm_reference(x, weight, bias, 1e-5)
        for config in LAYER_NORM_CONFIGS:
            assert_within(ext.layer_norm(x, weight, bias, 1e-5, config), expected, 2e-3)


def test_layer_norm_takes_any_leading_shape_and_eps(ext):
    weight, bias = randn(24), randn(24)
    for shape in [(24,), (5, 24), (2, 3, 24), (2, 1, 3, 24)]:
        x = 1e-3 * randn(*shape)
        for eps in (0.0, 1e-12, 1e-5, 0.1):
            expected = layer_norm_reference(x, weight, bias, eps)
            assert_within(ext.layer_norm(x, weight, bias, eps), expected, 1e-4 * (1 + expected.abs()))


def test_layer_norm_constant_rows_give_the_bias(ext):
    weight, bias = randn(768), randn(768)
    x = torch.full((9, 768), 7.25, device="cuda")
    assert_within(ext.layer_norm(x, weight, bias), bias.double().expand(9, 768), 1e-5)


def test_layer_norm_nan_and_inf_stay_in_their_row(ext):
    x = randn(8, 768)
    x[2, 5] = float("nan")
    x[6, 700] = float("inf")
    y = ext.layer_norm(x, torch.ones(768, device="cuda"), torch.zeros(768, device="cuda"))
    assert y[[2, 6]].isnan().all()
    assert y[[0, 1, 3, 4, 5, 7]].isfinite().all()


@pytest.mark.parametrize("n", [64, 768, 1024, 2048, 20000])
def test_layer_norm_misaligned(ext, n):
    x, weight, bias = randn(5, n), randn(n), randn(n)
    expected = layer_norm_reference(x, weight, bias, 1e-5)
    for arguments in [(misaligned(x), weight, bias), (x, misaligned(weight), bias), (x, weight, misaligned(bias))]:
        assert_within(ext.layer_norm(*arguments), expected, 2e-5 * (1 + expected.abs()))


def test_layer_norm_beyond_32_bit_indices(ext):
    n = 768
    rows = 2**31 // n + 5
    x = torch.empty(rows, n, device="cuda")
    x[-7:] = randn(7, n)
    x[:-7] = 0
    weight, bias = randn(n), randn(n)
    y = ext.layer_norm(x, weight, bias)
    expected = layer_norm_reference(x[-9:], weight, bias, 1e-5)
    assert_within(y[-9:], expected, 2e-5 * (1 + expected.abs()))


# --- linear_gelu and linear_residual ----------------------------------------------------------------------------------

LINEAR_SIZES = [  # (rows, in_features, out_features)
    (1, 1, 1),
    (1, 768, 1),
    (3, 5, 7),
    (19, 111, 199),
    (64, 64, 64),
    (127, 129, 255),
    (200, 96, 64),
    (1000, 768, 100),
    (33, 3072, 768),
    (1, 4096, 4096),
]


@pytest.mark.parametrize("config", LINEAR_CONFIGS)
@pytest.mark.parametrize("size", LINEAR_SIZES, ids=str)
def test_linear(ext, size, config):
    rows, k, n = size
    x, weight, bias, residual = randn(rows, k), randn(n, k) / k**0.5, randn(n), randn(rows, n)
    sums = x.double() @ weight.double().T + bias.double()
    bound = product_bound(x, weight, tf32=config < 3)
    assert_within(ext.linear_residual(x, weight, bias, residual, config), sums + residual.double(), bound)
    # The slope of GELU stays below 1.13.
    tanh = FUSED_TANH if config in (0, 1, 3) else 4 * FP32_ROUNDOFF
    assert_within(ext.linear_gelu(x, weight, bias, config), gelu_reference(sums), 1.13 * bound + tanh * sums.abs())


def test_linear_strict_configs_are_fp32(ext):
    """The error of the strict configs is far below what TF32 rounding costs."""
    x, weight, bias = randn(512, 768), randn(768, 768), torch.zeros(768, device="cuda")
    residual = torch.zeros(512, 768, device="cuda")
    exact = x.double() @ weight.double().T
    error = [
        ((ext.linear_residual(x, weight, bias, residual, config).double() - exact).square().mean().sqrt()).item()
        for config in LINEAR_CONFIGS
    ]
    scale = exact.square().mean().sqrt().item()
    assert all(e / scale < 3e-6 for e in error[3:]), error
    assert all(1e-5 < e / scale < 2e-3 for e in error[:3]), error


def test_linear_takes_any_leading_shape(ext):
    weight, bias = randn(12, 8), randn(12)
    for shape in [(8,), (5, 8), (2, 3, 8)]:
        x, residual = randn(*shape), randn(*shape[:-1], 12)
        sums = x.double() @ weight.double().T + bias.double()
        assert_within(ext.linear_residual(x, weight, bias, residual, 3), sums + residual.double(), 1e-5)
        assert_within(ext.linear_gelu(x, weight, bias, 4), gelu_reference(sums), 1e-5)


@pytest.mark.parametrize("which", ["x", "weight", "bias", "residual"])
@pytest.mark.parametrize("config", LINEAR_CONFIGS)
def test_linear_misaligned(ext, which, config):
    tensors = {"x": randn(48, 64), "weight": randn(32, 64) / 8, "bias": randn(32), "residual": randn(48, 32)}
    sums = tensors["x"].double() @ tensors["weight"].double().T + tensors["bias"].double()
    bound = product_bound(tensors["x"], tensors["weight"], tf32=config < 3)
    expected = sums + tensors["residual"].double()
    tensors[which] = misaligned(tensors[which])
    assert_within(ext.linear_residual(*tensors.values(), config), expected, bound)
    if which != "residual":
        x, weight, bias, _ = tensors.values()
        assert_within(ext.linear_gelu(x, weight, bias, config), gelu_reference(sums), 1.13 * bound + 2e-3)


def test_linear_beyond_32_bit_indices(ext):
    """More than 2^31 results: the right answer, or a refusal; never a wrong one."""
    rows, k, n = 2**21 + 3, 8, 1024
    x, weight, bias = randn(rows, k), randn(n, k), randn(n)
    try:
        y = ext.linear_gelu(x, weight, bias, 1)
    except RuntimeError as error:
        assert "cuBLASLt" in str(error)
        return
    sums = x[-5:].double() @ weight.double().T + bias.double()
    assert_within(
        y[-5:], gelu_reference(sums), 1.13 * product_bound(x[-5:], weight, tf32=True) + FUSED_TANH * sums.abs()
    )


# --- patch_embed ------------------------------------------------------------------------------------------------------

PATCH_EMBED_SIZES = [  # (batch, channels, height, width, patch, embed)
    (1, 1, 1, 1, 1, 1),
    (2, 3, 15, 15, 5, 19),
    (3, 3, 17, 23, 5, 7),  # rows and columns left over
    (5, 1, 28, 30, 7, 33),
    (2, 4, 32, 48, 8, 64),
    (2, 3, 33, 35, 16, 20),  # width % 4 != 0
    (2, 3, 40, 52, 16, 20),  # left over, but aligned
    (4, 3, 64, 64, 4, 96),
    (1, 3, 224, 224, 16, 768),
]


def patch_embed_reference(images, weight, bias):
    """Window by window as a matrix product, with no convolution involved."""
    _, channels, height, width = images.shape
    embed, _, patch, _ = weight.shape
    rows, columns = height // patch, width // patch
    used = images[:, :, : rows * patch, : columns * patch].double()
    windows = used.reshape(-1, channels, rows, patch, columns, patch).permute(0, 2, 4, 1, 3, 5)
    windows = windows.reshape(-1, rows * columns, channels * patch * patch)
    return windows, windows @ weight.double().reshape(embed, -1).T + bias.double()


@pytest.mark.parametrize("config", PATCH_EMBED_CONFIGS)
@pytest.mark.parametrize("size", PATCH_EMBED_SIZES, ids=str)
def test_patch_embed(ext, size, config):
    batch, channels, height, width, patch, embed = size
    images = randn(batch, channels, height, width)
    weight, bias = randn(embed, channels, patch, patch) / (channels * patch**2) ** 0.5, randn(embed)
    windows, expected = patch_embed_reference(images, weight, bias)
    bound = product_bound(windows, weight.reshape(embed, -1), tf32=config != 3)
    for view in (images, misaligned(images)):
        assert_within(ext.patch_embed(view, weight, bias, config), expected, bound)


@pytest.mark.parametrize("config", PATCH_EMBED_CONFIGS)
def test_patch_embed_misaligned(ext, config):
    images, weight, bias = randn(2, 3, 16, 16), randn(48, 3, 8, 8) / 14, randn(48)
    windows, expected = patch_embed_reference(images, weight, bias)
    bound = product_bound(windows, weight.reshape(48, -1), tf32=config != 3)
    for arguments in [
        (misaligned(images), weight, bias),
        (images, misaligned(weight), bias),
        (images, weight, misaligned(bias)),
        (misaligned(images), misaligned(weight), misaligned(bias)),
    ]:
        assert_within(ext.patch_embed(*arguments, config), expected, bound)


def test_patch_embed_strict_config_is_fp32(ext):
    images, weight, bias = randn(4, 3, 64, 64), randn(96, 3, 16, 16), torch.zeros(96, device="cuda")
    _, exact = patch_embed_reference(images, weight, bias)
    scale = exact.square().mean().sqrt()
    error = ((ext.patch_embed(images, weight, bias, 3).double() - exact).square().mean().sqrt() / scale).item()
    assert error < 3e-6


def test_patch_embed_beyond_32_bit_indices(ext):
    """More than 2^31 image elements: the right answer, or a refusal by cuDNN; never a wrong one."""
    batch = 2**31 // (3 * 224 * 224) + 2
    images = torch.empty(batch, 3, 224, 224, device="cuda")
    images[:-2] = 0
    images[-2:] = randn(2, 3, 224, 224)
    weight, bias = randn(8, 3, 16, 16) / 28, randn(8)
    try:
        y = ext.patch_embed(images, weight, bias, 1)
    except RuntimeError as error:
        assert "cuDNN" in str(error)
        return
    windows, expected = patch_embed_reference(images[-3:], weight, bias)
    assert_within(y[-3:], expected, product_bound(windows, weight.reshape(8, -1), tf32=True))


# --- all of them ------------------------------------------------------------------------------------------------------


def calls(ext, rows: int = 40):
    """One call of each operator as name -> (function of tensors, tensors)."""
    return {
        "layer_norm": (ext.layer_norm, [randn(rows, 96), randn(96), randn(96)]),
        "linear_gelu": (ext.linear_gelu, [randn(rows, 96), randn(64, 96), randn(64)]),
        "linear_residual": (ext.linear_residual, [randn(rows, 96), randn(64, 96), randn(64), randn(rows, 64)]),
        "patch_embed": (ext.patch_embed, [randn(rows, 3, 16, 16), randn(48, 3, 8, 8), randn(48)]),
    }


OPERATORS = ["layer_norm", "linear_gelu", "linear_residual", "patch_embed"]


@pytest.mark.parametrize("name", OPERATORS)
def test_empty_tensors(ext, name):
    function, tensors = calls(ext)[name]
    tensors[0] = tensors[0][:0]
    if name == "linear_residual":
        tensors[3] = tensors[3][:0]
    output = function(*tensors)
    assert output.shape[0] == 0 and output.numel() == 0 and output.is_cuda


def test_no_columns(ext):
    nothing = torch.empty(0, device="cuda")
    assert ext.layer_norm(torch.empty(3, 0, device="cuda"), nothing, nothing).shape == (3, 0)
    assert ext.linear_gelu(randn(3, 8), torch.empty(0, 8, device="cuda"), nothing).shape == (3, 0)
    with pytest.raises(RuntimeError, match="at least one feature"):
        ext.linear_gelu(torch.empty(3, 0, device="cuda"), torch.empty(4, 0, device="cuda"), randn(4))


@pytest.mark.parametrize("name", OPERATORS)
def test_refusals(ext, name):
    """Each bad argument is refused with the operator's and the argument's name."""
    function, tensors = calls(ext)[name]
    for position, tensor in enumerate(tensors):
        bad = {
            "must be a CUDA tensor": tensor.cpu(),
            "must be Float": tensor.half(),
            "must": tensor[..., :-1].contiguous(),
        }
        if tensor.dim() > 1:
            bad["must be contiguous"] = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        for message, value in bad.items():
            if name == "patch_embed" and position == 0 and message == "must":
                continue  # narrower images are images too
            arguments = [*tensors[:position], value, *tensors[position + 1 :]]
            with pytest.raises(RuntimeError, match=f"{name}: .*{message}"):
                function(*arguments)
        with pytest.raises((RuntimeError, TypeError)):
            function(*[*tensors[:position], None, *tensors[position + 1 :]])
    for config in (-1, 6, 1000):  # no operator has so many
        with pytest.raises(RuntimeError, match="config must"):
            function(*tensors, config=config)


@pytest.mark.parametrize("name", OPERATORS)
def test_repeats_bit_for_bit_and_leaves_its_inputs_alone(ext, name):
    function, tensors = calls(ext)[name]
    before = [tensor.clone() for tensor in tensors]
    first = function(*tensors)
    kept = first.clone()
    others = [randn(*tensor.shape) for tensor in tensors]
    assert not torch.equal(function(*others), kept)
    assert torch.equal(first, kept), "a later call changed an earlier result"
    for _ in range(5):
        assert torch.equal(function(*tensors), kept)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("first_call", [True, False], ids=["untuned", "tuned"])
def test_current_stream_with_inputs_in_flight(ext, name, first_call):
    """Inputs are still being written on the current stream when the operator is called, the first time or later."""
    rows = 41 if first_call else 40
    function, tensors = calls(ext, rows)[name]
    if not first_call:
        function(*tensors)
    targets = [torch.full_like(tensor, float("nan")) for tensor in tensors]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        for target, tensor in zip(targets, tensors, strict=True):
            target.copy_(tensor)
        output = function(*targets)
    stream.synchronize()
    assert torch.equal(output, function(*tensors))


@pytest.mark.parametrize("name", OPERATORS)
def test_inside_a_cuda_graph(ext, name):
    function, tensors = calls(ext)[name]
    function(*tensors)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(*tensors)
    for tensor in tensors:
        tensor.copy_(torch.randn_like(tensor))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(output, function(*tensors))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", OPERATORS)
def test_another_device_than_the_current_one(ext, name):
    function, tensors = calls(ext)[name]
    expected = function(*tensors)
    moved = [tensor.to("cuda:1") for tensor in tensors]
    with torch.cuda.device(0):
        output = function(*moved)
        assert output.device == torch.device("cuda:1") and torch.cuda.current_device() == 0
    torch.testing.assert_close(output.cpu(), expected.cpu(), atol=1e-2, rtol=1e-2)
    with pytest.raises(RuntimeError, match="is on cuda:1"):
        function(tensors[0], *moved[1:])


@pytest.mark.parametrize("size", ["full", "small"])
def test_the_whole_model(ext, size, monkeypatch):
    """ModelNew within the verification's tolerance of Model in fp64, with room to spare; new weights show at once."""
    monkeypatch.syspath_prepend(str(ROOT))
    model, model_new = importlib.import_module("model"), importlib.import_module("model_new")
    arguments = model.get_init_inputs() if size == "full" else model.get_small_init_inputs()
    problem, solution = model.Model(*arguments).eval().cuda(), model_new.ModelNew(*arguments).eval().cuda()
    (images,) = model.get_inputs() if size == "full" else model.get_small_inputs()
    images = images.cuda()
    with torch.no_grad():
        for _ in range(2):
            solution.load_state_dict(problem.state_dict())
            output = solution(images)
            expected = problem.double()(images.double())
            problem.float()
            assert_within(output, expected, 3e-3 + 3e-3 * expected.abs())
            for value in problem.parameters():
                value.add_(0.01 * torch.randn_like(value))
