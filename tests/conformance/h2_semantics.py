"""Cases of RFC 9113, 8 (what HTTP means over HTTP/2) and 10.5 (floods)."""

import h2.config
import h2.connection
import h2.events
import hpack
from hyperframe import frame as hf

from h2_peer import (CALM, COMPRESSION, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, INTERNAL, NO_ERROR, PING,
                     PROTOCOL, RST, SETTINGS, STREAM_CLOSED, Peer, case, raw)


# --- 8: HTTP semantics ---

@case
def malformed_requests():
    good = Peer(preface=False).fields()

    def without(name):
        return [field for field in good if field[0] != name]

    malformed = [
        without(":method"), without(":scheme"), without(":path"),
        good + [("X-Upper", "a")], good + [(":unknown", "a")], good + [(":status", "200")],
        good[:1] + [("early", "a")] + good[1:], good + [(":method", "GET")], good + [(":path", "/again")],
        without(":path") + [(":path", "")],
        good + [("connection", "keep-alive")], good + [("keep-alive", "1")], good + [("proxy-connection", "x")],
        good + [("transfer-encoding", "chunked")], good + [("upgrade", "h2c")], good + [("te", "gzip")],
        good + [("bad name", "x")], good + [("bad-value", "a\r\nb: c")], good + [("bad-value", "a\0b")],
        good + [("content-length", "x")], good + [("content-length", "1"), ("content-length", "2")],
    ]
    for fields in malformed:
        peer = Peer()
        peer.request(1, fields)
        try:
            peer.stream_error(1, PROTOCOL)
        except AssertionError as error:
            raise AssertionError(f"{fields[-1]} in {fields}: {error}") from None


@case
def content_length_that_is_not_the_datas():
    for length, data in (("3", b"four"), ("5", b"four")):
        peer = Peer()
        peer.request(1, peer.fields("POST", content_length=length), END_HEADERS)
        peer.send(raw(DATA, END_STREAM, 1, data))
        peer.stream_error(1, PROTOCOL)


@case
def content_length_without_a_body():
    peer = Peer()
    peer.request(1, peer.fields("POST", content_length="4"))
    peer.stream_error(1, PROTOCOL)


@case
def trailers_with_a_pseudo_field():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.request(1, [(":path", "/")])
    peer.stream_error(1, PROTOCOL, STREAM_CLOSED, NO_ERROR)


@case
def a_second_head_that_does_not_end_the_stream():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.request(1, [("x", "y")], END_HEADERS)
    peer.stream_error(1, PROTOCOL, STREAM_CLOSED, NO_ERROR)


@case
def te_trailers_is_allowed():
    peer = Peer()
    peer.request(1, peer.fields(te="trailers"))
    assert peer.response(1)[0] == 200


@case
def a_dynamic_table_that_changes_size():
    peer = Peer()
    peer.serves(1)
    peer.encoder.header_table_size = 0
    peer.serves(3)
    peer.encoder.header_table_size = 4096
    peer.serves(5)


@case
def an_unmodified_client_library():
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    peer = Peer(preface=False)
    done = set()
    for _ in range(10):
        stream = connection.get_next_available_stream_id()
        connection.send_headers(stream, peer.fields(), end_stream=True)
    peer.send(connection.data_to_send())
    statuses = {}
    while len(done) < 10:
        data = peer.socket.recv(65536)
        assert data, "closed early"
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                fields = dict(event.headers)
                statuses[event.stream_id] = fields.get(b":status") or fields[":status"]
            if isinstance(event, h2.events.StreamEnded):
                done.add(event.stream_id)
        peer.send(connection.data_to_send())
    assert {str(s).strip("b'") for s in statuses.values()} == {"200"}, statuses


# --- 10: floods ---

@case
def rapid_resets():
    peer = Peer()
    for stream in range(1, 6001, 2):
        peer.request(stream, peer.fields("POST"), END_HEADERS)
        peer.send(raw(RST, 0, stream, b"\0\0\0\x08"))
    peer.connection_error(CALM)


@case
def pings_without_end():
    peer = Peer()
    for _ in range(200):
        peer.send(raw(PING, 0, 0, b"12345678") * 1000)
    peer.connection_error(CALM)


@case
def settings_without_end():
    peer = Peer()
    for _ in range(200):
        peer.send(raw(SETTINGS, 0, 0) * 1000)
    peer.connection_error(CALM)


@case
def empty_data_without_end():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    for _ in range(100):
        peer.send(raw(DATA, 0, 1) * 1000)
    got = peer.frames(lambda f: isinstance(f, (hf.GoAwayFrame, hf.RstStreamFrame)) or "END_STREAM" in f.flags)
    assert got is None or "END_STREAM" in got.flags or got.error_code in (CALM, NO_ERROR, STREAM_CLOSED), got


@case
def continuations_without_end():
    peer = Peer()
    peer.request(1, flags=END_STREAM)
    for _ in range(10000):
        peer.send(raw(CONTINUATION, 0, 1))
    peer.connection_error(CALM, PROTOCOL, INTERNAL)


@case
def a_field_block_without_end():
    peer = Peer()
    peer.request(1, flags=END_STREAM)
    for i in range(2000):
        peer.send(raw(CONTINUATION, 0, 1, hpack.Encoder().encode([(f"x-{i}", "v" * 1000)])))
    peer.connection_error(CALM, PROTOCOL, INTERNAL, COMPRESSION)


@case
def more_field_bytes_than_allowed_are_refused():
    peer = Peer()
    fields = peer.fields() + [(f"x-{i}", "v" * 4000) for i in range(30)]
    block = hpack.Encoder().encode(fields, huffman=False)
    pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)]
    peer.send(raw(HEADERS, END_STREAM, 1, pieces[0]))
    for i, piece in enumerate(pieces[1:], 2):
        peer.send(raw(CONTINUATION, END_HEADERS if i == len(pieces) else 0, 1, piece))
    assert peer.response(1)[0] == 431
