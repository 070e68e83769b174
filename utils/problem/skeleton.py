"""The text of a fresh solution: model_new.py and one pair of kernel files, from a problem's shapes and dtypes.

What comes out compiles and runs, and is wrong on purpose: the kernel fills its outputs with NaN (or -1), which no
reference gives, until somebody writes the computation.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from utils.present.outcome import CannotTell

# dtype -> (C++ type, c10 scalar type, the value a skeleton writes)
_TYPES = {
    "float32": ("float", "kFloat32", 'nanf("")'),
    "float64": ("double", "kFloat64", 'nan("")'),
    "float16": ("__half", "kFloat16", '__float2half(nanf(""))'),
    "bfloat16": ("__nv_bfloat16", "kBFloat16", '__float2bfloat16(nanf(""))'),
    "int64": ("int64_t", "kInt64", "-1"),
    "int32": ("int32_t", "kInt32", "-1"),
    "int16": ("int16_t", "kInt16", "-1"),
    "int8": ("int8_t", "kInt8", "-1"),
    "uint8": ("uint8_t", "kUInt8", "255"),
    "bool": ("bool", "kBool", "false"),
}
_SCALARS = {"int": "int64_t", "float": "double", "bool": "bool"}
# Beyond this many weights each as an argument of its own is unreadable; they go as one list then.
_MOST_WEIGHTS = 12


@dataclass(frozen=True)
class Tensor:
    """An argument of the op: its C++ name, its Python expression, shape and dtype."""

    name: str
    expression: str
    shape: list[int]
    dtype: str


@dataclass(frozen=True)
class Scalar:
    name: str
    expression: str
    kind: str


@dataclass(frozen=True)
class Plan:
    """Everything the three files are written from."""

    name: str
    inputs: list[Tensor | Scalar]
    weights: list[Tensor]
    outputs: list[tuple[list[str], str]]  # shape as C++ expressions, dtype
    result: str  # Python expression that gives forward's result from `out`
    model: str  # the source of model.py
    listed: int = 0  # number of weights when they are handed over as one list


def plan(name: str, facts: dict[str, Any], model: str) -> Plan:
    """What to generate for the problem described by `facts` (describe.py). Raises CannotTell for odd dtypes."""
    inputs: list[Tensor | Scalar] = []
    for entry in facts["inputs"]:
        label = identifier(entry["name"])
        if "tensor" in entry:
            inputs.append(Tensor(label, entry["name"], entry["shape"], _known(entry["dtype"], entry["name"])))
        elif "list" in entry or "tuple" in entry:
            for index, item in enumerate(entry.get("list") or entry.get("tuple") or []):
                if "tensor" in item:
                    inputs.append(
                        Tensor(
                            f"{label}_{index}",
                            f"{entry['name']}[{index}]",
                            item["shape"],
                            _known(item["dtype"], entry["name"]),
                        )
                    )
        elif entry.get("type") in _SCALARS:
            inputs.append(Scalar(label, entry["name"], _SCALARS[entry["type"]]))
    taken = {argument.name for argument in inputs}
    weights = []
    for entry in facts["weights"]:
        label = identifier(entry["name"])
        while label in taken:
            label += "_"
        taken.add(label)
        if entry["dtype"] in _TYPES:
            weights.append(Tensor(label, _attribute(entry["name"]), entry["shape"], entry["dtype"]))
    tensors = _leaves(facts["outputs"])
    small = _leaves(facts["small"]["outputs"]) if facts.get("small") else None
    outputs = []
    for index, leaf in enumerate(tensors):
        outputs.append((_sizes(leaf["shape"], index, inputs, facts, small), _known(leaf["dtype"], "an output")))
    if not outputs:
        raise CannotTell("forward returns no tensor; there is nothing for a kernel to write")
    if not any(isinstance(argument, Tensor) for argument in inputs):
        raise CannotTell("forward takes no tensor; a kernel has nothing to read and no device to run on")
    single = len(outputs) == 1
    listed = len(weights) if len(weights) > _MOST_WEIGHTS else 0
    return Plan(name, inputs, [] if listed else weights, outputs, _rebuilt(facts["outputs"], single), model, listed)


def identifier(name: str) -> str:
    """`name` as a C++ and Python identifier that is no word of either language."""
    plain = re.sub(r"\W+", "_", name).strip("_") or "kernel"
    if plain[0].isdigit():
        plain = "k_" + plain
    words = {
        "int",
        "float",
        "double",
        "bool",
        "class",
        "new",
        "template",
        "const",
        "auto",
        "default",
        "register",
        "out",
        "stream",
        "config",
        "in",
        "is",
        "lambda",
        "return",
        "for",
        "if",
        "while",
        "switch",
        "case",
        "operator",
        "this",
        "torch",
        "at",
        "m",
        "guard",
    }
    return plain + "_" if plain in words else plain


def _known(dtype: str, what: str) -> str:
    if dtype not in _TYPES:
        raise CannotTell(
            f"{what} is {dtype}, for which no skeleton can be written; write the pair by hand (see docs/formats.md)"
        )
    return dtype


def _attribute(name: str) -> str:
    """`layers.0.weight` as the expression self.layers[0].weight."""
    said = "self"
    for part in name.split("."):
        if part.isdigit():
            said += f"[{part}]"
        elif part.isidentifier():
            said += f".{part}"
        else:
            return f"self.get_parameter({name!r})"
    return said


def _leaves(structure: dict[str, Any]) -> list[dict[str, Any]]:
    if "tensor" in structure:
        return [structure]
    items = structure.get("list") or structure.get("tuple") or list((structure.get("dict") or {}).values())
    return [leaf for item in items for leaf in _leaves(item)]


def _rebuilt(structure: dict[str, Any], single: bool) -> str:
    """The Python expression that puts forward's result together from the op's result `out`."""
    if "tensor" in structure:
        return "out" if single else f"out[{structure['tensor']}]"
    if "list" in structure:
        return f"[{', '.join(_rebuilt(item, single) for item in structure['list'])}]"
    if "tuple" in structure:
        items = [_rebuilt(item, single) for item in structure["tuple"]]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if "dict" in structure:
        return "{" + ", ".join(f"{key!r}: {_rebuilt(item, single)}" for key, item in structure["dict"].items()) + "}"
    return structure["value"]


def _sizes(
    shape: list[int],
    output: int,
    inputs: list[Tensor | Scalar],
    facts: dict[str, Any],
    small: list[dict[str, Any]] | None,
) -> list[str]:
    """Each size of an output, taken from an input where it follows one, a number otherwise."""
    said = []
    for axis, size in enumerate(shape):
        found = None
        for index, entry in enumerate(facts["inputs"]):
            if "tensor" not in entry:
                continue
            label = identifier(entry["name"])
            axes = sorted(range(len(entry["shape"])), key=lambda a: a != axis)  # the same axis first
            for other in axes:
                if entry["shape"][other] != size:
                    continue
                if small is not None:
                    theirs = facts["small"]["inputs"][index]["shape"]
                    if other >= len(theirs) or theirs[other] != small[output]["shape"][axis]:
                        continue
                elif other != axis:
                    continue  # equal by chance, more often than not
                found = f"{label}.size({other})"
                break
            if found:
                break
        said.append(found or str(size))
    return said


def cuda_text(p: Plan) -> str:
    """kernels/<name>.cu"""
    outputs = [(f"out{i}" if len(p.outputs) > 1 else "out", dtype) for i, (_, dtype) in enumerate(p.outputs)]
    headers = ["<cuda_runtime.h>", "", "<cstdint>", "<stdexcept>", "<string>"]
    used = {dtype for _, dtype in outputs} | {t.dtype for t in [*p.inputs, *p.weights] if isinstance(t, Tensor)}
    if "float16" in used:
        headers.insert(0, "<cuda_fp16.h>")
    if "bfloat16" in used:
        headers.insert(0, "<cuda_bf16.h>")
    includes = "\n".join(f"#include {h}" if h else "" for h in headers)
    arguments = [f"{_TYPES[dtype][0]}* {label}, int64_t {label}_count" for label, dtype in outputs]
    arguments += [_launcher_argument(a) for a in [*p.inputs, *p.weights]]
    launches = "\n".join(
        f"    fill({label}, {label}_count, static_cast<{_TYPES[dtype][0]}>({_TYPES[dtype][2]}), stream);"
        for label, dtype in outputs
    )
    head = f'extern "C" void {p.name}_launcher('
    unused = "\n".join(f"    (void){a.name};" for a in [*p.inputs, *p.weights])
    return f"""// {p.name}: write here what it computes, in a sentence or a formula.
//
{_shape_comment(p)}
// This is a skeleton: it compiles and runs, and fills the result with NaN (-1 for integers) so that verification fails
// until the computation is written. Replace `fill` by your kernel; keep the launcher's stream.
{includes}

namespace {{

template <typename T>
__global__ void fill_kernel(T* out, int64_t count, T value) {{
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {{
        out[i] = value;
    }}
}}

template <typename T>
void fill(T* out, int64_t count, T value, cudaStream_t stream) {{
    if (count == 0) return;
    const int64_t blocks = (count + 255) / 256;
    fill_kernel<T><<<static_cast<unsigned int>(blocks < 65535 ? blocks : 65535), 256, 0, stream>>>(out, count, value);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) {{
        throw std::runtime_error(std::string("{p.name}: ") + cudaGetErrorString(error));
    }}
}}

}}  // namespace

{head}{_wrapped([*arguments, "int config", "cudaStream_t stream"], len(head))}) {{
{unused}
    (void)config;
{launches}
}}
"""


def binding_text(p: Plan) -> str:
    """kernels/<name>_binding.cpp"""
    tensors = [a for a in [*p.inputs, *p.weights] if isinstance(a, Tensor)]
    first = next(a for a in p.inputs if isinstance(a, Tensor))
    outputs = [(f"out{i}" if len(p.outputs) > 1 else "out", sizes, dtype) for i, (sizes, dtype) in enumerate(p.outputs)]
    needs = {t.dtype for t in tensors} | {dtype for _, _, dtype in outputs}
    extra = "".join(
        f"\n#include <{h}>" for d, h in (("bfloat16", "cuda_bf16.h"), ("float16", "cuda_fp16.h")) if d in needs
    )
    launcher = [f"{_TYPES[dtype][0]}* {label}, int64_t {label}_count" for label, _, dtype in outputs]
    launcher += [_launcher_argument(a) for a in [*p.inputs, *p.weights]] + ["int config", "cudaStream_t stream"]
    parameters = [
        f"const torch::Tensor& {a.name}" if isinstance(a, Tensor) else f"{a.kind} {a.name}"
        for a in [*p.inputs, *p.weights]
    ]
    parameters += ["const std::vector<torch::Tensor>& weights"] if p.listed else []
    returned = "torch::Tensor" if len(outputs) == 1 else "std::vector<torch::Tensor>"
    checks = "\n".join(
        f'    check({a.name}, "{a.name}", torch::{_TYPES[a.dtype][1]}, {len(a.shape)}, {first.name});'
        f"  // [{', '.join(map(str, a.shape))}]"
        for a in tensors
    )
    if p.listed:
        checks += f"""
    // Model's parameters and buffers, in the order of model_new.py: hand what the kernels need to the launcher.
    TORCH_CHECK(weights.size() == {p.listed}, "{p.name}: {p.listed} weights are needed, got ", weights.size());"""
    makes = "\n".join(
        f"    torch::Tensor {label} = torch::empty({{{', '.join(sizes)}}}, "
        f"{first.name}.options().dtype(torch::{_TYPES[dtype][1]}));"
        for label, sizes, dtype in outputs
    )
    call = [f"{_pointer(label, dtype, False)}, {label}.numel()" for label, _, dtype in outputs]
    call += [_pointer(a.name, a.dtype, True) if isinstance(a, Tensor) else a.name for a in [*p.inputs, *p.weights]]
    call += ["static_cast<int>(config)", "c10::cuda::getCurrentCUDAStream().stream()"]
    result = outputs[0][0] if len(outputs) == 1 else "{" + ", ".join(label for label, _, _ in outputs) + "}"
    names = [a.name for a in [*p.inputs, *p.weights]] + (["weights"] if p.listed else [])
    named = _wrapped([f'pybind11::arg("{name}")' for name in names] + ['pybind11::arg("config") = 0'], 10)
    vector = "\n#include <vector>" if len(outputs) > 1 or p.listed else ""
    head = f'extern "C" void {p.name}_launcher('
    return f"""// Python binding of {p.name}.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
{extra}
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>{vector}

#include "../binding_registry.h"

{head}{_wrapped(launcher, len(head))});

namespace {{

void check(const torch::Tensor& tensor, const char* name, torch::ScalarType dtype, int64_t dims,
           const torch::Tensor& first) {{
    constexpr const char* op = "{p.name}: ";
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), op, name, " must be a contiguous CUDA tensor");
    TORCH_CHECK(tensor.scalar_type() == dtype, op, name, " must be ", dtype, ", but is ", tensor.scalar_type());
    TORCH_CHECK(tensor.dim() == dims, op, name, " must have ", dims, " dimensions, but is ", tensor.sizes());
    TORCH_CHECK(tensor.device() == first.device(), op, name, " must be on ", first.device());
}}

}}  // namespace

{returned} {p.name}_forward({_wrapped([*parameters, "int64_t config"], len(returned) + len(p.name) + 10)}) {{
{checks}

    const c10::cuda::CUDAGuard guard({first.name}.device());
{makes}
    {p.name}_launcher({_wrapped(call, len(p.name) + 14)});
    return {result};
}}

void register_{p.name}(pybind11::module& m) {{
    m.def("{p.name}_forward", &{p.name}_forward, "Say here what it computes.",
          {named});
}}

REGISTER_BINDING({p.name}, register_{p.name});
"""


def model_text(p: Plan) -> str:
    """model_new.py: Model's file with its inputs left out, its class renamed and its forward replaced."""
    tree = ast.parse(p.model)
    lines = p.model.splitlines()
    kept = []
    used = _names_for_construction(tree)
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.FunctionDef) and node.name.startswith("get_"):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not any((alias.asname or alias.name.split(".")[0]) in used for alias in node.names):
                continue
        elif (
            isinstance(node, ast.Assign)
            and not any(isinstance(n, ast.Name) and n.id in used for t in node.targets for n in ast.walk(t))
        ) or (isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != "Model" and node.name not in used):
            continue
        start = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", [])]]) - 1
        text = lines[start : node.end_lineno]
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            text = _class_text(node, lines, p)
        kept.append((node, "\n".join(text)))
    imports = [text for node, text in kept if isinstance(node, (ast.Import, ast.ImportFrom))]
    rest = [text for node, text in kept if not isinstance(node, (ast.Import, ast.ImportFrom))]
    head = "\n".join(["import cuda_extension", *[i for i in imports if i != "import cuda_extension"]])
    return head + "\n\n\n" + "\n\n\n".join(rest) + "\n"


def _class_text(node: ast.ClassDef, lines: list[str], p: Plan) -> list[str]:
    text = []
    body = [n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    text.append(f"class ModelNew({bases}):")
    for item in body:
        start = min([item.lineno, *[d.lineno for d in getattr(item, "decorator_list", [])]]) - 1
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            continue
        if isinstance(item, ast.FunctionDef) and item.name != "__init__" and not _helps_construction(item, node):
            continue
        segment = "\n".join(lines[start : item.end_lineno])
        text += [*re.sub(r"super\(\s*Model\s*,\s*self\s*\)", "super()", segment).splitlines(), ""]
    forward = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    indent = " " * node.body[0].col_offset
    returns = f" -> {ast.unparse(forward.returns)}" if forward.returns else ""
    arguments = [a.expression for a in [*p.inputs, *p.weights]]
    if p.listed:
        arguments.append("[*self.parameters(), *self.buffers()]")
    text.append(f"{indent}def forward({ast.unparse(forward.args)}){returns}:")
    call = f"cuda_extension.{p.name}_forward({', '.join(arguments)})"
    inner = indent * 2
    if len(inner) + len(call) + 6 > 110:
        call = f"cuda_extension.{p.name}_forward(\n" + "".join(f"{inner}    {a},\n" for a in arguments) + f"{inner})"
    if p.result == "out":
        text.append(f"{inner}return {call}")
    else:
        text += [f"{inner}out = {call}", f"{inner}return {p.result}"]
    return text


def _names_for_construction(tree: ast.Module) -> set[str]:
    """Top-level names that the constructor needs, directly or through other top-level definitions, and annotations."""
    definitions: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        definitions[name.id] = node.value
    model = definitions.get("Model")
    pending: list[ast.AST] = []
    body: list[ast.stmt] = getattr(model, "body", [])
    for item in body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            pending += [item.args, *([item.returns] if item.returns else [])]
        elif not isinstance(item, ast.FunctionDef) or item.name == "__init__" or _helps_construction(item, model):
            pending.append(item)
    pending += list(getattr(model, "bases", []))
    used: set[str] = set()
    while pending:
        for part in ast.walk(pending.pop()):
            if isinstance(part, ast.Name) and part.id not in used:
                used.add(part.id)
                if part.id in definitions and part.id != "Model":
                    pending.append(definitions[part.id])
    return used


def _helps_construction(method: ast.FunctionDef, cls: Any) -> bool:
    """Whether the constructor calls the method (an initialiser of weights, say)."""
    called = set()
    for item in cls.body:
        if isinstance(item, ast.FunctionDef) and item.name not in {"forward", method.name}:
            called |= {n.attr for n in ast.walk(item) if isinstance(n, ast.Attribute)}
    return method.name in called


def _launcher_argument(argument: Tensor | Scalar) -> str:
    if isinstance(argument, Scalar):
        return f"{argument.kind} {argument.name}"
    return f"const {_TYPES[argument.dtype][0]}* {argument.name}"


def _pointer(name: str, dtype: str, const: bool) -> str:
    kind = _TYPES[dtype][0]
    if dtype in {"float16", "bfloat16"}:
        return f"reinterpret_cast<{'const ' if const else ''}{kind}*>({name}.data_ptr())"
    return f"{name}.data_ptr<{kind}>()"


def _shape_comment(p: Plan) -> str:
    lines = []
    for a in [*p.inputs, *p.weights]:
        what = f"{a.dtype} [{', '.join(map(str, a.shape))}]" if isinstance(a, Tensor) else a.kind
        lines.append(f"//     {a.name:<24} {what}")
    for i, (sizes, dtype) in enumerate(p.outputs):
        lines.append(f"//     -> {'out' + str(i) if len(p.outputs) > 1 else 'out':<21} {dtype} [{', '.join(sizes)}]")
    return "\n".join(lines)


def _wrapped(items: list[str], indent: int) -> str:
    """Arguments joined, broken before column 120."""
    said, column = "", indent
    for index, item in enumerate(items):
        piece = item + (", " if index < len(items) - 1 else "")
        if column + len(piece) > 118 and index:
            said = said.rstrip() + "\n" + " " * min(indent, 40)
            column = min(indent, 40)
        said += piece
        column += len(piece)
    return said
