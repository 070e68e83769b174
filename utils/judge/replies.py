"""What an answer of the runner may look like, operation by operation. Anything else is interference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from utils.judge import structure
from utils.judge.protocol import ProtocolError

_MOST = 65536


def check_reply(op: str, reply: dict[str, Any]) -> dict[str, Any]:
    """`reply` when it has exactly the fields the operation's answer has, each well formed. Raises ProtocolError."""
    fields = _FIELDS[op]
    if set(reply) != {"ok", *fields}:
        raise ProtocolError(f"the answer to {op} has other fields than it should")
    for name, well_formed in fields.items():
        if not well_formed(reply[name]):
            raise ProtocolError(f"the answer to {op} has a malformed {name}")
    return reply


def _text(value: Any, most: int = 8192) -> bool:
    return isinstance(value, str) and len(value) <= most


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(_text(item, 1024) for item in value)


def _text_map(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST
        and all(_text(key, 1024) and _text(item, 1024) for key, item in value.items())
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62


def _booleans(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(isinstance(item, bool) for item in value)


def _times(value: Any) -> bool:
    """Milliseconds: finite and not negative. Comparing is safe where converting a huge integer would overflow."""
    return (
        isinstance(value, list)
        and len(value) <= _MOST
        and all(isinstance(item, (int, float)) and not isinstance(item, bool) and 0 <= item < 1e9 for item in value)
    )


def _tree(value: Any) -> bool:
    structure.check(value)
    return True


def _state(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST
        and all(_text(key, 1024) and _tree(item) for key, item in value.items())
    )


def _ops(value: Any) -> bool:
    if not isinstance(value, list) or len(value) > 4096:
        return False
    for item in value:
        if not isinstance(item, dict) or set(item) != {"op", "count", "phase", "python_stack"}:
            return False
        if not (
            _text(item["op"], 256)
            and _whole(item["count"])
            and _text(item["phase"], 64)
            and _texts(item["python_stack"])
        ):
            return False
    return True


def _error(value: Any) -> bool:
    names = {"where", "type", "message", "line", "trace"}
    return isinstance(value, dict) and set(value) == names and all(_text(value[name]) for name in names)


def _whole_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_whole(item) for item in value)


_Check = Callable[[Any], bool]
_FIELDS: dict[str, dict[str, _Check]] = {
    "hello": {
        "torch": _text,
        "flags": _text_map,
        "device_name": _text,
        "capability": lambda value: value is None or _whole_pair(value),
    },
    "import": {"flags": _text_map, "build": _text_map},
    "construct": {"ops": _ops, "state": _state},
    "load": {"ops": _ops, "differs": _text_map},
    "put": {},
    "drop": {},
    "call": {"out": _tree, "ms": _times, "copied": _booleans, "launch_error": _text, "ops": _ops, "flags": _text_map},
    "again": {"out": _tree, "copied": _booleans},
    "state": {"missing": _texts},
    "settle": {"launch_error": _text, "flags": _text_map},
    "bye": {},
    "error": {"error": _error},
}
