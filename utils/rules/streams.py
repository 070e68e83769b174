"""Work goes to the stream the caller is on: launches, copies and library handles in C++ and CUDA, streams in Python."""

from __future__ import annotations

import re

from tree_sitter import Node

from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_reading import Reader
from utils.rules.rule import Violation, rule

STREAM = rule(
    "stream",
    "everything is queued on the current stream, c10::cuda::getCurrentCUDAStream()",
    "syntax tree: launch configurations, stream arguments, streams created, handles without a stream",
    "take c10::cuda::getCurrentCUDAStream() in the binding and pass it to every launch, copy and handle",
)

_DEFAULT = re.compile(
    r"^(\(\s*cudaStream_t\s*\)|static_cast<\s*cudaStream_t\s*>\()?\s*\(?(0|NULL|nullptr|cudaStream_t\(\)|cudaStream_t\{\}|\{\}|cudaStreamLegacy|cudaStreamPerThread|cudaStreamDefault|CU_STREAM_LEGACY|CU_STREAM_PER_THREAD)\)?$"
)
_CREATE = re.compile(r"^(cudaStreamCreate(WithFlags|WithPriority)?|cuStreamCreate(WithPriority)?)$")
_POOL = re.compile(r"\b(getStreamFromPool|getDefaultCUDAStream|getStreamFromExternal)\b")
# Runtime calls with a stream, and where it stands (-1: last); those that take one by default need the argument.
_STREAM_LAST = {
    "cudaMemcpyAsync": 5, "cudaMemsetAsync": 4, "cudaMemcpy2DAsync": 8, "cudaMemset2DAsync": 6, "cudaMemcpy3DAsync": 2,
    "cudaMemcpyToSymbolAsync": 6, "cudaMemcpyFromSymbolAsync": 6, "cudaMemcpyPeerAsync": 6, "cudaLaunchKernel": 6,
    "cudaLaunchCooperativeKernel": 6, "cuLaunchKernel": 11, "cudaGraphLaunch": 2, "cudaMallocAsync": 3,
    "cudaFreeAsync": 2,
    "cublasSetStream": 2, "cublasSetStream_v2": 2, "cudnnSetStream": 2, "cudaLaunchHostFunc": 3,
}  # fmt: skip
_STREAM_INDEX = {"cuLaunchKernel": 8, "cudaLaunchHostFunc": 0}
# Their synchronous forms run on the legacy default stream.
_SYNCHRONOUS = {
    "cudaMemcpy",
    "cudaMemset",
    "cudaMemcpy2D",
    "cudaMemset2D",
    "cudaMemcpy3D",
    "cudaMemcpyToSymbol",
    "cudaMemcpyFromSymbol",
    "cuMemcpyDtoD",
    "cuMemsetD8",
    "cuMemsetD32",
}


def stream_violations(source: CppSource, launchers: dict[str, int]) -> list[Violation]:
    """Breaches in one source. `launchers`: functions of the solution that take a cudaStream_t -> its position."""
    found: dict[int, Violation] = {}

    def report(node: Node, sentence: str) -> None:
        line = source.line(node)
        if line not in found:
            found[line] = Violation(STREAM.id, sentence, source.path, line, source.said(node), STREAM.mend)

    made = _made_streams(source)
    for node in walk(source.root):
        if node.type == "call_expression":
            _call(source, node, launchers, made, report)
        elif node.type == "declaration" and "cudaLaunchConfig_t" in text(node.child_by_field_name("type") or node):
            _launch_config(node, made, report)
    _handles(source, report)
    return [found[line] for line in sorted(found)]


def stream_positions(sources: list[CppSource]) -> dict[str, int]:
    """Functions of the solution with a cudaStream_t parameter, and which argument it is."""
    found = {}
    for source in sources:
        for node in walk(source.root):
            if node.type != "function_declarator":
                continue
            name = node.child_by_field_name("declarator")
            parameters = node.child_by_field_name("parameters")
            if name is None or parameters is None:
                continue
            listed = [child for child in parameters.children if child.type.endswith("parameter_declaration")]
            for index, parameter in enumerate(listed):
                kind = parameter.child_by_field_name("type")
                if kind is not None and text(kind) in {"cudaStream_t", "CUstream", "const cudaStream_t"}:
                    found[text(name).split("::")[-1]] = index
    return found


def _made_streams(source: CppSource) -> dict[str, str]:
    """Names of streams that are not the caller's: created, taken from the pool, or given a default value.

    A stream made to capture a CUDA graph on is left out: the legacy default stream cannot be captured, and the graph
    itself is launched where the caller says.
    """
    made: dict[str, str] = {}
    captured: set[str] = set()
    for node in walk(source.root):
        if node.type == "call_expression":
            name, arguments = _called(node)
            if _CREATE.match(name) and arguments:
                made[text(arguments[0]).lstrip("&").strip()] = name
            elif name == "cudaStreamBeginCapture" and arguments:
                captured.add(text(arguments[0]))
        elif node.type in {"init_declarator", "assignment_expression"}:
            left = node.child_by_field_name("declarator") or node.child_by_field_name("left")
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            if left is None or value is None:
                continue
            said = " ".join(text(value).split())
            if _POOL.search(said):
                made[text(left)] = _POOL.search(said).group(1)  # type: ignore[union-attr]
            elif node.parent is not None and "cudaStream_t" in text(node.parent).split("=")[0] and _DEFAULT.match(said):
                made[text(left)] = said
    return {name: how for name, how in made.items() if name not in captured}


def _call(source: CppSource, node: Node, launchers: dict[str, int], made: dict[str, str], report) -> None:
    configuration = next((child for child in node.children if child.type == "kernel_call_syntax"), None)
    if configuration is not None:
        given = _listed(configuration)
        if len(given) < 4:
            report(node, "a kernel is launched without a stream, on the default stream")
        else:
            _stream_argument(given[3], node, made, "a kernel is launched", report)
        return
    name, arguments = _called(node)
    if _CREATE.match(name):
        if arguments and text(arguments[0]).lstrip("&").strip() in made:
            report(node, f"a stream of its own is made with {name}")
    elif name in _SYNCHRONOUS:
        report(node, f"{name} runs on the default stream; use {name}Async with the stream")
    elif name in _STREAM_LAST:
        needed = _STREAM_LAST[name]
        if len(arguments) < needed:
            report(node, f"{name} is called without a stream, on the default stream")
        else:
            _stream_argument(arguments[_STREAM_INDEX.get(name, needed - 1)], node, made, f"{name} is called", report)
    elif name == "cublasLtMatmul" and arguments:
        _stream_argument(arguments[-1], node, made, "cublasLtMatmul is called", report)
    elif name in launchers and len(arguments) > launchers[name]:
        _stream_argument(arguments[launchers[name]], node, made, f"{name} is called", report)


def _stream_argument(argument: Node, node: Node, made: dict[str, str], what: str, report) -> None:
    said = " ".join(text(argument).split())
    if _DEFAULT.match(said):
        report(node, f"{what} on the default stream ({said})")
    elif said in made:
        report(node, f"{what} on a stream that is not the caller's ({said}, from {made[said]})")
    elif match := _POOL.search(said):
        report(node, f"{what} on a stream that is not the caller's ({match.group(1)})")


def _launch_config(node: Node, made: dict[str, str], report) -> None:
    declarator = node.child_by_field_name("declarator")
    if declarator is None:
        return
    name = declarator.child_by_field_name("declarator") or declarator
    scope = node.parent
    while scope is not None and scope.type not in {"compound_statement", "translation_unit"}:
        scope = scope.parent
    words = text(scope) if scope is not None else text(node)
    # The same structure asks for occupancy; only a launch needs the stream.
    if not re.search(rf"\bcudaLaunchKernelExC?\s*(<[^;]*>)?\s*\(\s*&?\s*{re.escape(text(name))}\b", words):
        return
    match = re.search(rf"\b{re.escape(text(name))}\s*\.\s*stream\s*=\s*([^;]+);", words)
    designated = re.search(r"\.stream\s*=\s*([^,}]+)", text(node))
    said = match or designated
    value = said.group(1).strip() if said is not None else None
    positional = declarator.child_by_field_name("value")
    if value is None:
        members = [c for c in positional.children if c.is_named] if positional is not None else []
        # gridDim, blockDim, dynamicSmemBytes, stream, attrs, numAttrs
        value = (
            text(members[3]) if len(members) >= 4 and not any(c.type == "initializer_pair" for c in members) else None
        )
    if value is None:
        report(node, f"{text(name)}.stream is never set, so the launch goes to the default stream")
    elif _DEFAULT.match(value) or value in made:
        report(node, f"{text(name)}.stream is not the caller's stream ({value})")


def _handles(source: CppSource, report) -> None:
    """Handles made here that no stream is ever given to."""
    calls: dict[str, Node] = {}
    for node in walk(source.root):
        if node.type == "call_expression":
            name, _ = _called(node)
            calls.setdefault(name, node)
    for create, give in (
        ("cublasCreate", "cublasSetStream"),
        ("cublasCreate_v2", "cublasSetStream"),
        ("cudnnCreate", "cudnnSetStream"),
    ):
        if create in calls and give not in calls and f"{give}_v2" not in calls:
            report(calls[create], f"a handle is made with {create}, but {give} never gives it the caller's stream")


def _called(node: Node) -> tuple[str, list[Node]]:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None:
        return "", []
    if function.type in {"template_function", "template_method"}:
        function = function.child_by_field_name("name") or function
    return text(function).split("::")[-1], _listed(arguments) if arguments is not None else []


def _listed(node: Node) -> list[Node]:
    return [child for child in node.children if child.is_named and child.type != "comment"]


def python_stream_violations(reader: Reader) -> list[Violation]:
    """Streams of Python's own reached from forward; capturing a CUDA graph is what they are honestly needed for."""
    names = {path for _, path, _, _ in reader.references}
    if names & {
        "torch.cuda.CUDAGraph",
        "torch.cuda.graph",
        "torch.cuda.graphs.CUDAGraph",
        "torch.cuda.make_graphed_callables",
    }:
        return []
    found = []
    for context, path, file, line in reader.references:
        if context == "forward" and path in {
            "torch.cuda.Stream",
            "torch.cuda.stream",
            "torch.cuda.ExternalStream",
            "torch.cuda.set_stream",
            "torch.cuda.default_stream",
            "torch.cuda.StreamContext",
            "torch.Stream",
        }:
            found.append(
                Violation(
                    STREAM.id,
                    f"forward works with a stream of its own ({path})",
                    file,
                    line,
                    path,
                    "leave the stream to the caller: call the custom ops directly",
                )
            )
    return found
