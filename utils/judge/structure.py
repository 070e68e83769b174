"""Trees of values as JSON: what forward is given and what it returns, with tensors as descriptions.

A node is a dict with a kind "k":

    none | bool | int | float | complex | str | dtype | device | size     plain values, "v" holds them as text
    tuple | list                                                    "v": nodes; a named tuple adds "name" and "fields"
    dict                                                            "keys": plain nodes, "v": nodes
    tensor                                                          whatever `leaf` made of it, at least dtype and size
    other                                                           "type": the name of a type that has no meaning here

Numbers travel as text (floats as hexadecimal), so that NaN, infinities, signed zeros and large integers survive.
`check` accepts nothing else: it is what stands between the judge and a runner that may send anything.
"""

from __future__ import annotations

import collections
import keyword
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from utils.judge.protocol import ProtocolError

Node = dict[str, Any]

MAX_DEPTH = 32
MAX_LEAVES = 4096
MAX_TEXT = 4096
MAX_RANK = 64
_PLAIN = ("none", "bool", "int", "float", "complex", "str", "dtype", "device", "size")

# Names of torch.dtype without their "torch." prefix, and the bytes of one element.
DTYPES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
}


def encode(value: Any, leaf: Callable[[Any], Node], depth: int = 0) -> Node:
    """The node of `value`; `leaf(tensor)` makes the node of a tensor, including its kind."""
    import torch

    if depth > MAX_DEPTH:
        return {"k": "other", "type": f"a structure more than {MAX_DEPTH} levels deep"}
    if isinstance(value, torch.Tensor):
        return leaf(value)
    if value is None:
        return {"k": "none"}
    if isinstance(value, torch.Size):
        return {"k": "size", "v": [str(int(item)) for item in value]}
    if isinstance(value, bool):
        return {"k": "bool", "v": bool(value)}
    if isinstance(value, int):
        if value.bit_length() > 3000:
            return {"k": "other", "type": f"int of {value.bit_length()} bits"}
        return {"k": "int", "v": str(int(value))}
    if isinstance(value, float):
        return {"k": "float", "v": float.hex(value)}
    if isinstance(value, complex):
        return {"k": "complex", "v": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, str):
        return {"k": "str", "v": value[:MAX_TEXT]}
    if isinstance(value, torch.dtype):
        return {"k": "dtype", "v": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"k": "device", "v": str(value)}
    if isinstance(value, tuple):
        node: Node = {"k": "tuple", "v": [encode(item, leaf, depth + 1) for item in value]}
        fields = getattr(type(value), "_fields", None) or _structseq_fields(value)
        if fields:
            node.update(name=type(value).__name__, fields=list(fields))
        return node
    if isinstance(value, list):
        return {"k": "list", "v": [encode(item, leaf, depth + 1) for item in value]}
    if isinstance(value, Mapping):
        keys = [encode(key, leaf, depth + 1) for key in value]
        return {"k": "dict", "keys": keys, "v": [encode(item, leaf, depth + 1) for item in value.values()]}
    return {"k": "other", "type": f"{type(value).__module__}.{type(value).__qualname__}"[:MAX_TEXT]}


def decode(node: Node, leaf: Callable[[Node], Any]) -> Any:
    """The value of a node that passed `check`; `leaf(node)` makes the tensor of a tensor node."""
    import torch

    kind: str = node["k"]
    value: Any = node.get("v")
    if kind == "tensor":
        return leaf(node)
    if kind == "none":
        return None
    if kind in ("bool", "str"):
        return value
    if kind == "int":
        return int(value)
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(float.fromhex(value[0]), float.fromhex(value[1]))
    if kind == "dtype":
        return getattr(torch, value)
    if kind == "device":
        return torch.device(value)
    if kind == "size":
        return torch.Size(int(item) for item in value)
    if kind == "list":
        return [decode(item, leaf) for item in value]
    if kind == "tuple":
        items = [decode(item, leaf) for item in value]
        if node.get("fields"):
            return collections.namedtuple(node["name"], node["fields"], rename=True)(*items)
        return tuple(items)
    if kind == "dict":
        return {decode(key, leaf): decode(item, leaf) for key, item in zip(node["keys"], value, strict=True)}
    raise ProtocolError(f"a node of kind {kind} has no value")


def check(node: Any, depth: int = 0, count: list[int] | None = None) -> Node:
    """`node` itself when it is one this module could have made. Raises ProtocolError otherwise."""
    count = [0] if count is None else count
    count[0] += 1
    if depth > MAX_DEPTH + 2 or count[0] > MAX_LEAVES:
        raise ProtocolError("a structure is too deep or has too many parts")
    if not isinstance(node, dict) or not isinstance(node.get("k"), str):
        raise ProtocolError("a structure has a part without a kind")
    kind: str = node["k"]
    value: Any = node.get("v")
    if kind == "tensor":
        _check_tensor(node)
    elif kind in ("tuple", "list"):
        _need(isinstance(value, list), kind)
        for item in value:
            check(item, depth + 1, count)
        fields = node.get("fields")
        if fields is not None:
            _need(isinstance(fields, list) and all(_identifier(name) for name in [node.get("name"), *fields]), kind)
            _need(len(fields) == len(value), kind)
    elif kind == "dict":
        keys: Any = node.get("keys")
        _need(isinstance(value, list) and isinstance(keys, list) and len(keys) == len(value), kind)
        for key in keys:
            check(key, depth + 1, count)
            _need(key["k"] in (*_PLAIN, "tuple", "other"), kind)
        for item in value:
            check(item, depth + 1, count)
    elif kind == "other":
        _need(isinstance(node.get("type"), str) and len(node["type"]) <= MAX_TEXT, kind)
    elif kind in _PLAIN:
        _check_plain(kind, value)
    else:
        raise ProtocolError("a structure has a part of unknown kind")
    return node


def leaves(node: Node, path: str = "out") -> Iterator[tuple[str, Node]]:
    """Every part that is not a container, with its path: out, out[0], out['aux'][1]."""
    if node["k"] in ("tuple", "list"):
        for index, item in enumerate(node["v"]):
            yield from leaves(item, f"{path}[{index}]")
    elif node["k"] == "dict":
        for key, item in zip(node["keys"], node["v"], strict=True):
            yield from leaves(item, f"{path}[{show(key)}]")
    else:
        yield path, node


def tensors(node: Node, path: str = "out") -> list[tuple[str, Node]]:
    """The tensor leaves, in the order in which `encode` met them."""
    return [(where, leaf) for where, leaf in leaves(node, path) if leaf["k"] == "tensor"]


def show(node: Node) -> str:
    """A plain node as Python would write it, a container by its kind and length, a tensor by dtype and size."""
    kind: str = node["k"]
    value: Any = node.get("v")
    if kind == "tensor":
        return f"{node['dtype']} tensor of size {tuple(node['size'])}"
    if kind == "tuple":
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    if kind == "list":
        return f"a list of {len(value)}"
    if kind == "dict":
        return f"a dict with keys {', '.join(show(key) for key in node['keys']) or '(none)'}"
    if kind == "other":
        return f"a {node['type']}"
    if kind == "none":
        return "None"
    if kind == "float":
        return repr(float.fromhex(value))
    if kind == "complex":
        return repr(complex(float.fromhex(value[0]), float.fromhex(value[1])))
    if kind == "size":
        return f"torch.Size([{', '.join(value)}])"
    if kind == "dtype":
        return f"torch.{value}"
    return repr(value) if kind == "str" else str(value)


def differences(expected: Node, actual: Node, path: str = "out") -> list[str]:
    """What is different in kind, one sentence each: containers, lengths, keys, types, dtypes, sizes, devices.

    Values of plain numbers are not looked at here. A named tuple and a plain tuple are the same structure.
    """
    kind, other = str(expected["k"]), str(actual["k"])
    if kind != other:
        return [f"{path} is {_called(actual)}, the reference returns {_called(expected)}"]
    if kind in ("tuple", "list"):
        if len(expected["v"]) != len(actual["v"]):
            return [f"{path} has {len(actual['v'])} items, the reference returns {len(expected['v'])}"]
        found = []
        for index, (one, two) in enumerate(zip(expected["v"], actual["v"], strict=True)):
            found += differences(one, two, f"{path}[{index}]")
        return found
    if kind == "dict":
        ours = {show(key): item for key, item in zip(expected["keys"], expected["v"], strict=True)}
        theirs = {show(key): item for key, item in zip(actual["keys"], actual["v"], strict=True)}
        found = [f"{path} lacks the key {key}" for key in ours if key not in theirs]
        found += [f"{path} has the key {key}, which the reference does not return" for key in theirs if key not in ours]
        for key in ours:
            if key in theirs:
                found += differences(ours[key], theirs[key], f"{path}[{key}]")
        return found
    if kind == "tensor":
        if actual.get("odd"):
            return [f"{path} {actual['odd']}"]
        found = []
        for word, name in (("dtype", "dtype"), ("size", "shape"), ("device", "device")):
            if expected.get(word) != actual.get(word):
                one, two = (tuple(node[word]) if word == "size" else node.get(word) for node in (expected, actual))
                found.append(f"{path} has {name} {two}, the reference has {one}")
        return found
    if kind == "other" and expected["type"] != actual["type"]:
        return [f"{path} is {_called(actual)}, the reference returns {_called(expected)}"]
    return []


def bare(tree: Any) -> Any:
    """A tree without strides: what decides whether output slots can be used again."""
    if isinstance(tree, list):
        return [bare(item) for item in tree]
    if isinstance(tree, dict):
        return {
            key: bare(item)
            for key, item in tree.items()
            if key != "stride" and not (key == "v" and tree.get("k") in ("int", "float", "complex", "bool", "str"))
        }
    return tree


def _called(node: Node) -> str:
    names = {"tensor": "a tensor", "none": "None", "tuple": "a tuple", "list": "a list", "dict": "a dict"}
    if node["k"] == "tensor" and node.get("odd"):
        return f"a tensor that {node['odd']}"
    return names.get(node["k"]) or f"{show(node)} ({node['k']})" if node["k"] != "other" else show(node)


def _structseq_fields(value: tuple[Any, ...]) -> list[str]:
    """Field names of a torch.return_types tuple, which has no _fields."""
    if type(value).__module__ != "torch.return_types":
        return []
    return (
        [name for name, _ in zip(value.__match_args__, value, strict=False)] if hasattr(value, "__match_args__") else []
    )


def _check_tensor(node: Node) -> None:
    size: Any = node.get("size")
    stride: Any = node.get("stride")
    odd = node.get("odd")
    _need(odd is None or (isinstance(odd, str) and len(odd) <= MAX_TEXT), "tensor")
    _need(isinstance(node.get("dtype"), str) and len(node["dtype"]) <= 64, "tensor")
    _need(odd is not None or node["dtype"] in DTYPES, "tensor")
    _need(isinstance(node.get("device", ""), str) and len(node.get("device", "")) <= 64, "tensor")
    for numbers in (size, stride):
        _need(isinstance(numbers, list) and len(numbers) <= MAX_RANK, "tensor")
        _need(all(_whole(number) and abs(number) < 1 << 62 for number in numbers), "tensor")
    _need(len(size) == len(stride), "tensor")
    _need(all(number >= 0 for number in size), "tensor")
    for name in ("slot", "offset"):
        _need(name not in node or (_whole(node[name]) and 0 <= node[name] < 1 << 62), "tensor")
    known = {"k", "odd", "dtype", "device", "size", "stride", "slot", "offset", "alias", "parameter", "grad"}
    _need(set(node) <= known, "tensor")
    for name in ("parameter", "grad"):
        _need(isinstance(node.get(name, False), bool), "tensor")
    _need(node.get("alias") is None or (isinstance(node["alias"], str) and len(node["alias"]) <= 256), "tensor")


def _check_plain(kind: str, value: Any) -> None:
    if kind == "none":
        _need(value is None, kind)
    elif kind == "bool":
        _need(isinstance(value, bool), kind)
    elif kind == "size":
        _need(isinstance(value, list) and len(value) <= MAX_RANK and all(_digits(item) for item in value), kind)
    elif kind == "complex":
        _need(isinstance(value, list) and len(value) == 2 and all(_hex_float(part) for part in value), kind)
    else:
        _need(isinstance(value, str) and len(value) <= MAX_TEXT, kind)
        _need(kind != "int" or _digits(value), kind)
        _need(kind != "float" or _hex_float(value), kind)
        _need(kind != "dtype" or value in DTYPES, kind)


def _need(holds: Any, kind: str) -> None:
    if not holds:
        raise ProtocolError(f"a structure has a malformed part of kind {kind}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _digits(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= 1024 and text.removeprefix("-").isdecimal() and text.isascii()


def _hex_float(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > 64:
        return False
    try:
        float.fromhex(text)
    except (ValueError, OverflowError):
        return False
    return True


def _identifier(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= 256 and text.isidentifier() and not keyword.iskeyword(text)
