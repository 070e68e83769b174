"""Messages between judge and runner: length-prefixed JSON over one socket pair, file descriptors beside it.

A frame is four bytes of length (big endian) and that many bytes of UTF-8 JSON, an object. Every request of the judge
carries a fresh nonce that the answer must repeat, so that bytes written by anything else in the runner's process (a
thread of the solution, say) are seen as interference and never as an answer. Nothing but JSON of bounded size and depth
is ever read from the runner. Standard library only: both sides and the bootstrap use this file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import time
from collections.abc import Sequence
from typing import Any

# A runner's largest honest answer is a tree of output descriptions or a list of operators: a few hundred kilobytes.
MAX_FRAME = 8 << 20
_MAX_FDS = 32


class ProtocolError(Exception):
    """The other side sent something that is not an answer to what was asked."""


class Closed(Exception):
    """The other side is gone: it exited, crashed, or closed the socket."""


class TimedOut(Exception):
    """No complete answer came in time."""


class Channel:
    """One end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(True)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: dict[str, Any], fds: Sequence[int] = (), timeout: float | None = None) -> None:
        """Sends one frame; `fds` travel with its first byte. Raises Closed, or TimedOut when the reader is stuck."""
        payload = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        frame = len(payload).to_bytes(4, "big") + payload
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            self._socket.settimeout(_left(deadline))
            sent = socket.send_fds(self._socket, [frame], list(fds)) if fds else self._socket.send(frame)
            while sent < len(frame):
                self._socket.settimeout(_left(deadline))
                sent += self._socket.send(frame[sent:])
        except TimeoutError:
            raise TimedOut from None
        except OSError:
            raise Closed from None

    def receive(self, timeout: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """The next frame and the descriptors that came with it. Raises Closed, TimedOut or ProtocolError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        fds: list[int] = []
        try:
            header = self._read(4, deadline, fds)
            length = int.from_bytes(header, "big")
            if length > MAX_FRAME:
                raise ProtocolError(f"a message of {length} bytes was announced; {MAX_FRAME} is the most")
            payload = self._read(length, deadline, fds)
            message = parse(payload)
        except BaseException:
            for fd in fds:
                with contextlib.suppress(OSError):
                    os.close(fd)
            raise
        return message, fds

    def idle(self) -> bool:
        """Whether nothing waits to be read: what must hold before a request is sent. Raises Closed at its end."""
        ready, _, _ = select.select([self._socket], [], [], 0)
        if not ready:
            return True
        try:
            waiting = self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            raise Closed from None
        if not waiting:
            raise Closed
        return False

    def _read(self, count: int, deadline: float | None, fds: list[int]) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            try:
                self._socket.settimeout(_left(deadline))
                data, received, _, _ = socket.recv_fds(self._socket, min(count - len(parts), 1 << 20), _MAX_FDS)
            except TimeoutError:
                raise TimedOut from None
            except OSError:
                raise Closed from None
            fds.extend(received)
            if not data:
                raise Closed
            parts += data
        return bytes(parts)


def nonce() -> str:
    return secrets.token_hex(8)


def parse(payload: bytes) -> dict[str, Any]:
    """A JSON object from untrusted bytes. Raises ProtocolError for anything else, however deep or odd."""
    try:
        message = json.loads(payload.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is not JSON ({type(error).__name__})") from None
    if not isinstance(message, dict):
        raise ProtocolError("a message is not a JSON object")
    return message


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    # A zero would switch the socket to non-blocking; a passed deadline still reads what is already there.
    return max(deadline - time.monotonic(), 1e-3)
