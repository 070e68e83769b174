"""Which libraries a solution may use: the CUDA runtime, cuBLAS for GEMM, cuDNN for convolution."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_reading import Reader
from utils.rules.rule import Violation, rule

LIBRARY = rule(
    "library",
    "no library but the CUDA runtime, cuBLAS for GEMM and cuDNN for convolution",
    "included headers, calls in the syntax tree, Python imports, symbols and shared objects of the built module",
    "write the operation as a kernel of your own",
)

_CUBLAS_GEMM = re.compile(
    r"^cublas("
    r"[SDCZH]gemm(3m)?(Batched|StridedBatched|GroupedBatched)?|Gemm(Ex|BatchedEx|StridedBatchedEx|GroupedBatchedEx)|[SC]gemmEx|Cgemm3mEx|"
    r"Lt(Matmul\w*|MatrixLayout\w*|MatrixTransform\w*|Create|Destroy|Get\w*|Logger\w*|Heuristics\w*|DisableCpuInstructionsSetMask)|"
    r"(Create|Destroy|Set|Get|Logger|Xt)?(Handle|Stream|Workspace|MathMode|PointerMode|AtomicsMode|SmCountTarget|Version|Property|Status\w*|Vector\w*|Matrix\w*|Configure|Callback|EmulationStrategy\w*|FixedPoint\w*)|"
    r"Create|Destroy|GetCudartVersion"
    r")(_v2)?(_64)?$"
)
_CUDNN_CONVOLUTION = re.compile(
    r"^cudnn("
    r"Create\w*|Destroy\w*|Set\w*|Get\w*|Backend\w*|Query\w*|Find\w*|Im2Col|ReorderFilterAndBias|TransformTensor(Ex)?|TransformFilter|"
    r"Convolution(Forward|BackwardData|BackwardFilter|BiasActivationForward)|InitTransformDest|FusedOps\w*|MakeFusedOpsPlan|GraphVersionCheck|OpsVersionCheck|CnnVersionCheck"
    r")$"
)
# Operations of cuDNN's graph interface that are no convolution; pointwise ones may follow a convolution.
_CUDNN_GRAPH = re.compile(
    r"CUDNN_BACKEND_OPERATION_(MATMUL|REDUCTION|NORM_\w+|BN_\w+|RESAMPLE_\w+|RNG|RESHAPE|CONCAT|SIGNAL|PAGED_\w+|SDPA\w*|MOE\w*|SOFTMAX\w*|GEN_STATS|GENSTATS)_DESCRIPTOR"
)
_OTHER_LIBRARY = re.compile(
    r"^(cufft|cusparse|cusolver|curand|nccl|nvrtc|nppi?|nvjpeg|cutensor|cudss|nvshmem|cusparseLt|cutlass|mkl|cblas|LAPACKE|tensorrt|nvinfer)[A-Z_]\w*$"
)
_HEADERS = re.compile(
    r"^(cutlass|cute|thrust|raft|rmm|cudf|cuml|nccl|cufft|cusparse|cusolver|curand|nvrtc|npp|nvjpeg|cutensor|flashinfer|flash_attn|Eigen|mkl|cblas|openblas|opencv2?|NvInfer|dnnl|oneapi|immintrin|omp\.h|tbb|xformers|transformer_engine|kittens|tk/|deep_gemm)\b"
)
_CUB_DEVICE = re.compile(r"^(cub::(Device\w+|Dispatch\w+)|thrust::\w+)")
_NEEDED = re.compile(
    r"^(libc10(_cuda)?|libtorch(_cpu|_cuda|_python|_cuda_linalg)?|libcudart|libcuda|libcublas(Lt)?|libcudnn\w*|libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|librt|ld-linux[\w-]*|libpython[\d.]+\w*|libnvToolsExt)\.so"
)
# `utils` is the workbench: the rule `reach` speaks of it.
_PYTHON = {"torch", "cuda_extension", "triton", "numpy", "typing_extensions", "utils"}


def library_call(name: str) -> str | None:
    """Why a call of (or symbol) `name` is not allowed; None when it is, or when it is no library's."""
    if name.startswith("cublas") and name[6:7].isupper():
        return None if _CUBLAS_GEMM.match(name) else f"{name} is cuBLAS, but not GEMM"
    if name.startswith("cudnn") and name[5:6].isupper():
        return None if _CUDNN_CONVOLUTION.match(name) else f"{name} is cuDNN, but not convolution"
    if _OTHER_LIBRARY.match(name):
        return f"{name} belongs to a library that is not allowed"
    return None


def source_violations(source: CppSource) -> list[Violation]:
    """Headers and calls of other libraries in one source."""
    found = []
    for path, line in source.includes:
        if _HEADERS.match(path):
            found.append(
                Violation(
                    LIBRARY.id,
                    f"a header of another library is included: {path}",
                    source.path,
                    line,
                    f"#include <{path}>",
                    LIBRARY.mend,
                )
            )
    for node in walk(source.root):
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            if function is None:
                continue
            name = re.sub(r"<.*", "", " ".join(text(function).split()))
            why = library_call(name.split("::")[-1])
            if why is None and _CUB_DEVICE.match(name):
                why = f"{name} is a whole algorithm of a library, not a building block"
            if why:
                found.append(
                    Violation(LIBRARY.id, why, source.path, source.line(node), source.said(node), LIBRARY.mend)
                )
        elif node.type == "identifier" and _CUDNN_GRAPH.match(text(node)):
            found.append(
                Violation(
                    LIBRARY.id,
                    f"cuDNN is asked for more than convolution: {text(node)}",
                    source.path,
                    source.line(node),
                    text(node),
                    LIBRARY.mend,
                )
            )
    return _one_per_line(found)


def import_violations(reader: Reader, kind: str) -> list[Violation]:
    """Python packages other than torch, the extension (or triton, for a Triton solution) and the standard library."""
    found = []
    for file in list(reader.files.values()):
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            else:
                continue
            for name in names:
                root = name.split(".")[0]
                if root in sys.stdlib_module_names or reader.local_file(name, file) is not None:
                    continue
                if root not in _PYTHON or (root == "triton" and kind != "triton"):
                    mend = (
                        LIBRARY.mend
                        if root != "triton"
                        else "keep to one layout: kernels/ for an extension, solution.py for Triton"
                    )
                    found.append(
                        Violation(LIBRARY.id, f"{root} is imported", file.path, node.lineno, ast.unparse(node), mend)
                    )
    return _one_per_line(found)


def needed_violations(path: Path, needed: list[str]) -> list[Violation]:
    """Shared objects a built module asks for beyond those every extension does."""
    return [
        Violation(
            LIBRARY.id,
            f"the built module is linked to {name}",
            path,
            None,
            f"NEEDED {name}",
            "unlink it: write the operation as a kernel of your own",
        )
        for name in needed
        if not _NEEDED.match(name)
    ]


def _one_per_line(violations: list[Violation]) -> list[Violation]:
    seen: set[tuple] = set()
    kept = []
    for violation in violations:
        key = (violation.path, violation.line)
        if key not in seen:
            seen.add(key)
            kept.append(violation)
    return kept
