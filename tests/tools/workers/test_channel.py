"""Messages between processes: what is no message is told, whatever it is."""

import json
import pickle
import socket
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsmith.tools.workers import channel as channels
from gradsmith.tools.workers.channel import Channel, GarbledError

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def pair():
    ours, theirs = socket.socketpair()
    return Channel.of_parent(ours, plain=True), Channel.of_child(theirs, plain=True)


def framed(data: bytes) -> bytes:
    return struct.pack("!4sII", b"gs\r\n", len(data), zlib.crc32(data)) + data


@given(plain, plain)
def test_messages_arrive_as_they_were(one, other):
    parent, child = pair()
    child.send(one)
    child.send(other)
    assert [parent.receive(), parent.receive()] == [one, other]
    parent.send({1: (one, other)})
    assert child.receive() == {1: (one, other)}
    parent.close()
    with pytest.raises(EOFError):
        child.receive()
    child.close()


@given(st.binary(min_size=12, max_size=200), plain)
def test_what_is_no_message_is_told(junk, message):
    parent, child = pair()
    child.socket.sendall(junk)
    child.send(message)
    with pytest.raises(GarbledError):
        parent.receive()
    parent.close()
    child.close()


def test_a_message_in_pieces_is_waited_for():
    parent, child = pair()
    data = framed(b"[1, 2]")
    child.socket.sendall(data[:15])
    assert [*parent.received()] == []
    child.socket.sendall(data[15:])
    assert [*parent.received()] == [[1, 2]]
    parent.close()
    child.close()


class Evil:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize(
    "data", [pickle.dumps(Evil()), b"\xff", b"{", b"[" * 100_000, b""]
)
def test_a_parent_reads_plain_data_alone(data):
    parent, child = pair()
    child.socket.sendall(framed(data))
    with pytest.raises(GarbledError):
        parent.receive()
    parent.close()
    child.close()


def test_sizes_are_limited(monkeypatch):
    parent, child = pair()
    monkeypatch.setattr(channels, "LARGEST", 1000)
    child.send("x" * 998)
    assert len(parent.receive()) == 998
    with pytest.raises(ValueError, match="too many for a message"):
        child.send("x" * 999)
    child.socket.sendall(framed(json.dumps("x" * 999).encode()))
    with pytest.raises(GarbledError):
        parent.receive()
    parent.close()
    child.close()


def test_a_worker_answers_by_a_high_descriptor():
    parent, child = pair()
    assert child.fileno() >= channels.HIGH
    assert not child.socket.get_inheritable()
    parent.close()
    child.close()
