"""Torch compute in Python: in forward, ahead of it, and on the CPU; and code that cannot be read."""

from __future__ import annotations

import ast
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.solution import parse
from utils.rules.python_reading import Reader
from utils.rules.python_values import Event, base
from utils.rules.rule import Violation, rule

FORWARD = rule(
    "forward-compute",
    "ModelNew.forward makes and views tensors and calls your own kernels; torch computes nothing in it",
    "syntax tree, followed through aliases, attributes, helper functions and classes; operators such as @ on tensors",
    "move the computation into a kernel",
)
EARLY = rule(
    "early-compute",
    "forward's work is done in forward, not ahead of it by torch in the constructor or in hooks on the weights",
    "the same reading from __init__, load_state_dict, hooks and the top level of the file, less what Model does there",
    "keep initialisation only; prepare weights with a kernel of your own, again whenever they change",
)
CPU = rule(
    "cpu-fallback",
    "forward stays on the device of its inputs",
    "syntax tree: .cpu(), .to('cpu'), .numpy(), .tolist(), numpy on tensors, tensors made on the CPU",
    "keep the tensor where it is and let a kernel do the work",
)
HIDDEN = rule(
    "hidden-code",
    "what forward calls can be read in its source",
    "syntax tree: exec, eval, names of torch put together at run time, kernel sources that are not in the file",
    "write the call out",
)

# Work on weights or inputs, as opposed to filling fresh memory with first values.
_HEAVY = """
    matmul mm bmm mv dot vdot inner ger addmm addbmm baddbmm addmv addr einsum tensordot chain_matmul linear bilinear
    outer kron conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution _convolution
    softmax log_softmax layer_norm group_norm batch_norm instance_norm rms_norm native_layer_norm
    scaled_dot_product_attention multi_head_attention_forward avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d
    max_pool3d adaptive_avg_pool2d lstm gru rnn_tanh rnn_relu embedding embedding_bag fft_fft fft rfft ifft irfft fft2
    stft cumsum cumprod logsumexp cross_entropy mse_loss cdist inv pinv inverse gelu silu mish relu
"""
HEAVY = frozenset(_HEAVY.split())
_MOVING = {"detach", "copy", "clone", "data"}


def forward_violations(reader: Reader) -> list[Violation]:
    """forward-compute, cpu-fallback and hidden-code, reached from forward."""
    found = []
    if reader.model_new is None and "ModelNew" in reader.file.bindings:
        binding = reader.file.bindings["ModelNew"][-1]
        words = reader.text(binding)
        sentence = "ModelNew is made by an expression, not written as a class"
        mend = "write class ModelNew(nn.Module) with its forward"
        found.append(Violation(HIDDEN.id, sentence, reader.file.path, getattr(binding, "lineno", None), words, mend))
    for event in reader.events["forward"]:
        if event.kind == "cpu":
            found.append(_violation(CPU.id, event, f"forward takes its data to the CPU ({event.name})", CPU.mend))
        elif event.kind == "hidden":
            found.append(
                _violation(HIDDEN.id, event, f"forward runs code that cannot be read here ({event.name})", HIDDEN.mend)
            )
        else:
            sentence, mend = _said(event)
            found.append(_violation(FORWARD.id, event, sentence, mend))
    return found


def early_violations(reader: Reader, problem: Path | None) -> list[Violation]:
    """early-compute: heavy work in the constructor that Model's file does not do too, any compute in weight hooks."""
    if reader.model_new is None:
        return []
    shared = names_called(problem) if problem is not None else set()
    found = []
    for event in reader.events["early"]:
        name = base(event.name.split(".")[-1])
        heavy = event.kind == "module" or (event.kind in {"call", "operator"} and name in HEAVY)
        if event.kind == "hidden":
            found.append(
                _violation(HIDDEN.id, event, f"code that cannot be read here runs ({event.name})", HIDDEN.mend)
            )
        elif heavy and name not in shared:
            found.append(_violation(EARLY.id, event, f"torch computes ahead of forward ({name})", EARLY.mend))
    for event in reader.events["hook"]:
        name = base(event.name.split(".")[-1])
        if event.kind in {"call", "operator", "module", "cast"} and name not in _MOVING:
            found.append(
                _violation(EARLY.id, event, f"torch computes on the weights when they are set ({name})", EARLY.mend)
            )
    return found


def _said(event: Event) -> tuple[str, str]:
    """The sentence and the mend for one event of forward."""
    match event.kind:
        case "operator":
            return f"an operator on tensors is compute of torch's ({event.name})", FORWARD.mend
        case "index":
            return "indexing with a tensor or a list gathers with torch's kernel", "gather inside the kernel"
        case "write":
            return (
                "writing into a tensor copies with torch's kernel",
                "let the kernel write its result where it belongs",
            )
        case "layout":
            return (
                f"{event.name}() after a permuting view makes torch's copy kernel move the data",
                "read the data with its strides inside the kernel",
            )
        case "cast":
            return f"torch converts the tensor ({event.name})", "convert inside the kernel"
        case "module":
            return (
                f"forward calls {event.name}, a module of torch's",
                "keep the module for its weights if you like, and compute with them in a kernel",
            )
        case "inherit":
            return (
                f"ModelNew inherits the forward of {event.name}",
                "derive from nn.Module and write forward with your own kernels",
            )
        case _:
            return f"forward calls {event.name}, compute of torch's", FORWARD.mend


def _violation(rule_id: str, event: Event, sentence: str, mend: str) -> Violation:
    return Violation(rule_id, sentence, event.file, event.line or None, event.text, mend)


def names_called(problem: Path) -> set[str]:
    """Attributes and names called anywhere outside forward in the problem file: its constructor may do the same."""
    try:
        tree = parse(problem)
    except CannotTell:
        return set()
    names: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            continue
        if isinstance(node, ast.Call):
            called = node.func
            names.add(
                base(
                    called.attr
                    if isinstance(called, ast.Attribute)
                    else called.id
                    if isinstance(called, ast.Name)
                    else ""
                )
            )
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            names.add("matmul")
        pending += ast.iter_child_nodes(node)
    return names
