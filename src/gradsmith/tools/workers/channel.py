"""Messages between two processes: marked, measured and checked.

Users' code runs on one side, and may write to any descriptor. What is no message is
told, and never taken for one.
"""

from __future__ import annotations

import json
import pickle
import socket
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

LARGEST = 64 * 2**20  # bytes of a message
HIGH = 900  # a descriptor that nobody hits by counting up from 3

_HEAD = struct.Struct("!4sII")  # mark, length and checksum
_MARK = b"gs\r\n"


class GarbledError(Exception):
    """What came is no message."""


def to_json(message: Any) -> bytes:
    return json.dumps(message).encode()


class Channel:
    """One end. `dumps` and `loads` are those of the messages sent and received."""

    def __init__(
        self, end: socket.socket, dumps: Callable[[Any], bytes], loads: Any
    ) -> None:
        self.socket, self.dumps, self.loads = end, dumps, loads
        self._buffer = bytearray()

    @classmethod
    def of_parent(cls, end: socket.socket, *, plain: bool) -> Channel:
        """It sends anything; what it receives is plain data, or trusted."""
        return cls(end, pickle.dumps, json.loads if plain else pickle.loads)

    @classmethod
    def of_child(cls, end: socket.socket, *, plain: bool) -> Channel:
        return cls(_moved_up(end), to_json if plain else pickle.dumps, pickle.loads)

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def send(self, message: Any) -> None:
        data = self.dumps(message)
        if len(data) > LARGEST:
            raise ValueError(f"{len(data):,} bytes are too many for a message")
        head = _HEAD.pack(_MARK, len(data), zlib.crc32(data))
        self.socket.sendall(head + data)

    def receive(self) -> Any:
        """The next message, which is waited for; EOFError if there is none."""
        while True:
            for message in self._messages():
                return message
            self._read()

    def received(self) -> Iterator[Any]:
        """The messages that are there, once something is."""
        self._read()
        yield from self._messages()

    def _read(self) -> None:
        try:
            data = self.socket.recv(2**20)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self._buffer += data

    def _messages(self) -> Iterator[Any]:
        while len(self._buffer) >= _HEAD.size:
            mark, size, checksum = _HEAD.unpack_from(self._buffer)
            if mark != _MARK or size > LARGEST:
                raise GarbledError(bytes(self._buffer[:40]))
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return
            data = bytes(self._buffer[_HEAD.size : end])
            if zlib.crc32(data) != checksum:
                raise GarbledError(data[:40])
            del self._buffer[:end]
            yield self._loaded(data)

    def _loaded(self, data: bytes) -> Any:
        try:
            return self.loads(data)
        except (ValueError, RecursionError) as error:
            raise GarbledError(data[:40]) from error


def _moved_up(end: socket.socket) -> socket.socket:
    """The same under another descriptor, closed in programs that are started."""
    if sys.platform == "win32":
        return end
    import fcntl

    with suppress(OSError):  # fewer are allowed
        number = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH)
        end.close()
        return socket.socket(fileno=number)
    return end
