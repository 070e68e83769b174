"""Messages between judge and runner: what is read, what is refused, and that nothing hangs."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest

from utils.judge.protocol import MAX_FRAME, Channel, Closed, ProtocolError, TimedOut, parse
from utils.judge.replies import check_reply


def pair() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def test_a_message_arrives_whole_with_its_descriptor() -> None:
    one, two = socket.socketpair()
    left, right = Channel(one), Channel(two)
    read, write = os.pipe()
    message = {"n": "x", "text": "ü" * 300_000}
    thread = threading.Thread(target=left.send, args=(message, [write], 5.0))
    thread.start()
    got, fds = right.receive(5.0)
    thread.join()
    assert got == message and len(fds) == 1
    os.write(fds[0], b"through")
    assert os.read(read, 7) == b"through"
    for fd in (read, write, *fds):
        os.close(fd)


@pytest.mark.parametrize(
    "payload",
    [
        b"[1]",
        b"null",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_anything_but_a_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(payload)


def test_a_frame_too_long_is_refused_before_it_is_read() -> None:
    channel, other = pair()
    other.sendall((MAX_FRAME + 1).to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match="announced"):
        channel.receive(1.0)


def test_a_partial_frame_times_out_and_a_closed_one_is_closed() -> None:
    channel, other = pair()
    other.sendall(frame(b"{}")[:5])
    with pytest.raises(TimedOut):
        channel.receive(0.05)
    channel, other = pair()
    other.sendall(frame(b"{}")[:5])
    other.close()
    with pytest.raises(Closed):
        channel.receive(1.0)


def test_sending_to_a_reader_that_never_reads_times_out() -> None:
    channel, _other = pair()
    with pytest.raises(TimedOut):
        channel.send({"x": "y" * (4 << 20)}, timeout=0.1)


def test_unasked_bytes_are_seen() -> None:
    channel, other = pair()
    assert channel.idle()
    other.sendall(b"\0")
    assert not channel.idle()


CALL = {"ok": True, "out": {"k": "none"}, "ms": [0.5], "copied": [], "launch_error": "", "ops": [], "flags": {}}


def test_a_well_formed_answer_is_taken() -> None:
    assert check_reply("call", dict(CALL))["ms"] == [0.5]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ms", [-1.0]),
        ("ms", [True]),
        ("ms", ["1"]),
        ("ms", 0.5),
        ("ms", [1e300]),
        ("copied", [1]),
        ("launch_error", None),
        ("ops", [{"op": "aten::mm"}]),
        ("ops", [{"op": "aten::mm", "count": "1", "phase": "forward", "python_stack": []}]),
        ("flags", {"a": 1}),
        ("out", {"k": "verdict"}),
        ("out", {"k": "tensor", "dtype": "float32", "size": [-1], "stride": [1]}),
        ("out", {"k": "tensor", "dtype": "float32", "size": [1 << 70], "stride": [1]}),
        ("out", {"k": "tensor", "dtype": "object", "size": [1], "stride": [1]}),
        ("out", {"k": "float", "v": "__import__('os')"}),
        ("out", {"k": "tuple", "v": [{"k": "none"}], "name": "a b", "fields": ["x"]}),
    ],
)
def test_malformed_answers_are_refused(name: str, value: object) -> None:
    with pytest.raises(ProtocolError):
        check_reply("call", {**CALL, name: value})


def test_fields_too_many_or_too_few_are_refused() -> None:
    with pytest.raises(ProtocolError):
        check_reply("call", {**CALL, "verdict": "PASS"})
    with pytest.raises(ProtocolError):
        check_reply("call", {name: value for name, value in CALL.items() if name != "ms"})


def test_a_structure_too_deep_or_too_wide_is_refused() -> None:
    deep: dict = {"k": "none"}
    for _ in range(60):
        deep = {"k": "list", "v": [deep]}
    with pytest.raises(ProtocolError):
        check_reply("call", {**CALL, "out": deep})
    wide = {"k": "list", "v": [{"k": "none"}] * 5000}
    with pytest.raises(ProtocolError):
        check_reply("call", {**CALL, "out": wide})
    assert json.dumps(wide)
