#!/usr/bin/python3
"""RFC 9113 seen from a client that breaks it: each case opens a connection of its own to a running server, sends
frames (hyperframe, hpack) and looks at what comes back. The peer is judged by what the RFC allows: where it says
"stream or connection error", both pass.

    h2_cases.py HOST:PORT [--path /v2/health/live] [--only WORD]

The path must answer 200 to GET and anything but a hang to POST. Last line: `N passed, N failed`.
"""

import argparse
import socket
import struct
import sys
import time

import h2.config
import h2.connection
import h2.events
import hpack
from hyperframe import frame as hf

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_ERROR, PROTOCOL, INTERNAL, FLOW_CONTROL, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE, REFUSED, CANCEL, COMPRESSION = range(10)
CALM = 11
WAIT_S = 5.0

CASES = []
TARGET = {}


def case(function):
    CASES.append(function)
    return function


def raw(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20


class Peer:
    def __init__(self, preface=True, settings=()):
        self.socket = socket.create_connection((TARGET["host"], TARGET["port"]), timeout=WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.buffer = b""
        self.seen = []
        if preface:
            payload = b"".join(struct.pack(">HI", key, value) for key, value in settings)
            self.send(PREFACE + raw(SETTINGS, 0, 0, payload))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the server may have closed already; what it said before counts

    def fields(self, method="GET", **extra):
        fields = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", TARGET["path"])]
        return fields + [(name.replace("_", "-"), value) for name, value in extra.items()]

    def request(self, stream, fields=None, flags=END_STREAM | END_HEADERS):
        block = self.encoder.encode(self.fields() if fields is None else fields)
        self.send(raw(HEADERS, flags, stream, block))

    def frames(self, until):
        """Reads frames until `until(frame)` is true; None at the end of the connection."""
        deadline = time.monotonic() + WAIT_S
        while True:
            while len(self.buffer) >= 9:
                parsed, length = hf.Frame.parse_frame_header(memoryview(self.buffer[:9]))
                if len(self.buffer) < 9 + length:
                    break
                parsed.parse_body(memoryview(self.buffer[9:9 + length]))
                self.buffer = self.buffer[9 + length:]
                self.seen.append(parsed)
                if isinstance(parsed, hf.SettingsFrame) and "ACK" not in parsed.flags:
                    self.send(raw(SETTINGS, ACK, 0))
                if until(parsed):
                    return parsed
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                raise AssertionError(f"nothing decisive within {WAIT_S} s, only {self.seen}") from None
            except ConnectionError:
                return None
            if not data:
                return None
            self.buffer += data

    def connection_error(self, *codes):
        got = self.frames(lambda f: isinstance(f, hf.GoAwayFrame) and f.error_code != NO_ERROR)
        assert got is None or got.error_code in codes, f"GOAWAY with {got.error_code}, expected one of {codes}"

    def stream_error(self, stream, *codes):
        """A reset of the stream, or a connection error, with one of the codes."""
        got = self.frames(lambda f: (isinstance(f, hf.RstStreamFrame) and f.stream_id == stream) or
                          (isinstance(f, hf.GoAwayFrame) and f.error_code != NO_ERROR))
        assert got is None or got.error_code in codes, f"{got} with {got.error_code}, expected one of {codes}"
        if isinstance(got, hf.RstStreamFrame):
            self.alive()

    def response(self, stream):
        """Reads to the stream's end; its status, body and trailers."""
        status, body, trailers = None, b"", []
        while True:
            got = self.frames(lambda f: f.stream_id == stream or isinstance(f, hf.GoAwayFrame))
            assert got is not None and not isinstance(got, hf.GoAwayFrame), f"no response: {self.seen}"
            assert not isinstance(got, hf.RstStreamFrame), f"reset with {got.error_code}"
            if isinstance(got, hf.HeadersFrame):
                fields = self.decoder.decode(got.data)
                if status is None:
                    status = int(dict(fields)[":status"])
                else:
                    trailers = fields
            if isinstance(got, hf.DataFrame):
                body += got.data
            if "END_STREAM" in got.flags:
                return status, body, trailers

    def alive(self):
        self.send(raw(PING, 0, 0, b"areuthr?"))
        got = self.frames(lambda f: isinstance(f, hf.PingFrame) and f.opaque_data == b"areuthr?")
        assert got is not None, "the connection has ended"

    def serves(self, stream):
        self.request(stream)
        status, _, _ = self.response(stream)
        assert status == 200, f"status {status}"


# --- 3: starting HTTP/2 ---

@case
def preface_then_request():
    Peer().serves(1)


@case
def preface_in_single_bytes():
    peer = Peer(preface=False)
    for byte in PREFACE + raw(SETTINGS, 0, 0):
        peer.send(bytes([byte]))
    peer.serves(1)


@case
def bad_preface():
    peer = Peer(preface=False)
    peer.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + raw(SETTINGS, 0, 0))
    data = peer.socket.recv(65536)
    assert not data or data.startswith(b"HTTP/1.1 ") or b"\x07" in data, data


@case
def first_frame_is_not_settings():
    peer = Peer(preface=False)
    peer.send(PREFACE + raw(PING, 0, 0, b"12345678"))
    peer.connection_error(PROTOCOL)


@case
def settings_are_acknowledged():
    peer = Peer()
    assert peer.frames(lambda f: isinstance(f, hf.SettingsFrame) and "ACK" in f.flags)


# --- 4: frames ---

@case
def unknown_frame_type_is_ignored():
    peer = Peer()
    peer.send(raw(0xbb, 0xff, 0, b"whatever") + raw(0xbc, 0, 1, b""))
    peer.serves(1)


@case
def undefined_flags_and_the_reserved_bit_are_ignored():
    peer = Peer()
    peer.send(raw(PING, 0xfe, 0x80000000, b"12345678"))
    peer.serves(1)


@case
def data_larger_than_max_frame_size():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(DATA, END_STREAM, 1, b"x" * 16385))
    peer.stream_error(1, FRAME_SIZE)


@case
def headers_larger_than_max_frame_size():
    peer = Peer()
    peer.send(raw(HEADERS, END_STREAM | END_HEADERS, 1, b"\0" * 20000))
    peer.connection_error(FRAME_SIZE)


@case
def broken_field_block():
    peer = Peer()
    peer.send(raw(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff\xff"))
    peer.connection_error(COMPRESSION)


@case
def field_block_interrupted_by_another_frame():
    for other in (raw(PRIORITY, 0, 1, b"\0\0\0\0\x10"), raw(PING, 0, 0, b"12345678"), raw(0xbb, 0, 0, b"")):
        peer = Peer()
        peer.request(1, flags=END_STREAM)
        peer.send(other)
        peer.connection_error(PROTOCOL)


@case
def field_block_interrupted_by_another_stream():
    peer = Peer()
    peer.request(1, flags=END_STREAM)
    peer.request(3)
    peer.connection_error(PROTOCOL)


@case
def field_block_in_continuations():
    peer = Peer()
    block = peer.encoder.encode(peer.fields())
    peer.send(raw(HEADERS, END_STREAM, 1, block[:5]) + raw(CONTINUATION, 0, 1, block[5:9]) +
              raw(CONTINUATION, END_HEADERS, 1, block[9:]))
    assert peer.response(1)[0] == 200


# --- 5: streams ---

@case
def frames_on_idle_streams():
    for frame in (raw(DATA, 0, 1, b"x"), raw(RST, 0, 1, b"\0\0\0\x08"), raw(WINDOW, 0, 1, b"\0\0\0\x08"),
                  raw(CONTINUATION, END_HEADERS, 1, b"")):
        peer = Peer()
        peer.send(frame)
        peer.connection_error(PROTOCOL, STREAM_CLOSED)


@case
def data_after_the_end_of_the_stream():
    peer = Peer()
    peer.request(1)
    peer.send(raw(DATA, END_STREAM, 1, b"more"))
    peer.frames(lambda f: isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame)) or "END_STREAM" in f.flags)
    codes = [f.error_code for f in peer.seen if isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame))]
    assert all(code in (STREAM_CLOSED, PROTOCOL) for code in codes), codes


@case
def headers_after_the_end_of_the_stream():
    peer = Peer()
    peer.request(1)
    peer.request(1)
    peer.stream_error(1, STREAM_CLOSED, PROTOCOL)


@case
def data_after_a_reset_is_ignored_or_an_error():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(RST, 0, 1, b"\0\0\0\x08") + raw(DATA, 0, 1, b"x"))
    peer.serves(3)


@case
def even_stream_identifier():
    peer = Peer()
    peer.request(2)
    peer.connection_error(PROTOCOL)


@case
def decreasing_stream_identifier():
    peer = Peer()
    peer.serves(5)
    peer.request(3)
    peer.connection_error(PROTOCOL, STREAM_CLOSED)


@case
def more_streams_than_allowed():
    peer = Peer()
    settings = peer.frames(lambda f: isinstance(f, hf.SettingsFrame) and "ACK" not in f.flags)
    limit = settings.settings.get(3)
    assert limit, "the server names no limit of streams"
    for stream in range(1, 2 * limit + 9, 2):
        peer.request(stream, peer.fields("POST"), END_HEADERS)
    peer.frames(lambda f: isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame)) and f.error_code in (REFUSED, PROTOCOL))
    codes = [f.error_code for f in peer.seen if isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame))]
    assert REFUSED in codes or PROTOCOL in codes, codes


@case
def stream_that_depends_on_itself():
    # RFC 9113 deprecates priorities: an error and no effect are both right.
    peer = Peer()
    peer.send(raw(PRIORITY, 0, 1, b"\0\0\0\x01\x10"))
    peer.request(1)
    got = peer.frames(lambda f: isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame)) or "END_STREAM" in f.flags)
    assert got is None or "END_STREAM" in got.flags or got.error_code == PROTOCOL, got


# --- 6: frame definitions ---

@case
def frames_that_belong_to_no_stream_or_to_one():
    for frame in (raw(DATA, END_STREAM, 0, b"x"), raw(HEADERS, END_STREAM | END_HEADERS, 0, b"\x82"),
                  raw(PRIORITY, 0, 0, b"\0\0\0\0\x10"), raw(RST, 0, 0, b"\0\0\0\x08"),
                  raw(CONTINUATION, END_HEADERS, 0, b""), raw(SETTINGS, 0, 1), raw(PING, 0, 1, b"12345678"),
                  raw(GOAWAY, 0, 1, b"\0" * 8)):
        peer = Peer()
        peer.send(frame)
        peer.connection_error(PROTOCOL)


@case
def padding_longer_than_the_frame():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(DATA, END_STREAM | PADDED, 1, b"\x06abcde"))
    peer.connection_error(PROTOCOL)
    peer = Peer()
    block = peer.encoder.encode(peer.fields())
    peer.send(raw(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, bytes([len(block) + 1]) + block))
    peer.connection_error(PROTOCOL)


@case
def padded_frames_are_read():
    peer = Peer()
    block = peer.encoder.encode(peer.fields())
    peer.send(raw(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\x04" + block + b"\0" * 4))
    assert peer.response(1)[0] == 200


@case
def frames_of_the_wrong_length():
    for frame in (raw(PING, 0, 0, b"1234567"), raw(RST, 0, 1, b"\0\0\0"), raw(SETTINGS, 0, 0, b"\0\0\0"),
                  raw(SETTINGS, ACK, 0, b"\0" * 6), raw(WINDOW, 0, 0, b"\0\0\0"), raw(GOAWAY, 0, 0, b"\0" * 4)):
        peer = Peer()
        peer.request(1, peer.fields("POST"), END_HEADERS)
        peer.send(frame)
        peer.connection_error(FRAME_SIZE)


@case
def priority_of_the_wrong_length():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(PRIORITY, 0, 1, b"\0\0\0\0"))
    peer.stream_error(1, FRAME_SIZE)


@case
def settings_with_forbidden_values():
    for key, value, code in ((2, 2, PROTOCOL), (4, 1 << 31, FLOW_CONTROL), (5, 16383, PROTOCOL),
                             (5, 1 << 24, PROTOCOL)):
        peer = Peer(settings=[(key, value)])
        peer.connection_error(code)


@case
def unknown_settings_are_ignored():
    Peer(settings=[(0xff, 5)]).serves(1)


@case
def ping_is_answered():
    peer = Peer()
    peer.send(raw(PING, 0, 0, b"\1\2\3\4\5\6\7\x08"))
    got = peer.frames(lambda f: isinstance(f, hf.PingFrame))
    assert "ACK" in got.flags and got.opaque_data == b"\1\2\3\4\5\6\7\x08"


@case
def goaway_of_the_client_lets_the_stream_finish():
    peer = Peer()
    peer.request(1)
    peer.send(raw(GOAWAY, 0, 0, b"\0" * 8))
    assert peer.response(1)[0] == 200
    assert peer.frames(lambda f: False) is None  # then the server closes


@case
def window_update_of_zero():
    peer = Peer()
    peer.send(raw(WINDOW, 0, 0, b"\0\0\0\0"))
    peer.connection_error(PROTOCOL)
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(WINDOW, 0, 1, b"\0\0\0\0"))
    peer.stream_error(1, PROTOCOL)


@case
def window_overflow():
    peer = Peer()
    peer.send(raw(WINDOW, 0, 0, b"\x7f\xff\xff\xff"))
    peer.connection_error(FLOW_CONTROL)
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(WINDOW, 0, 1, b"\x7f\xff\xff\xff"))
    peer.stream_error(1, FLOW_CONTROL)


@case
def initial_window_overflow():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(WINDOW, 0, 1, b"\0\0\0\x01") + raw(SETTINGS, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1)))
    peer.connection_error(FLOW_CONTROL)


@case
def the_clients_window_is_respected():
    peer = Peer(settings=[(4, 0)])
    peer.request(1, [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/v2")])
    peer.alive()
    assert not any(isinstance(f, hf.DataFrame) and f.data for f in peer.seen)
    for _ in range(3):
        peer.send(raw(WINDOW, 0, 1, b"\0\0\0\x01"))
        peer.alive()
    sizes = [len(f.data) for f in peer.seen if isinstance(f, hf.DataFrame)]
    assert all(size <= 1 for size in sizes), sizes


@case
def more_data_than_the_server_allows():
    peer = Peer()
    settings = peer.frames(lambda f: isinstance(f, hf.SettingsFrame) and "ACK" not in f.flags)
    peer.frames(lambda f: isinstance(f, hf.SettingsFrame) and "ACK" in f.flags)
    peer.alive()
    window = settings.settings.get(4, 65535)
    # Data for a stream that has ended counts against the connection's window and stream's alike.
    peer.request(1, peer.fields("POST"), END_HEADERS)
    for _ in range(window // 16384 * 40):
        peer.send(raw(DATA, 0, 1, b"x" * 16384))
    got = peer.frames(lambda f: isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame)) or "END_STREAM" in f.flags)
    assert got is None or "END_STREAM" in got.flags or got.error_code in (FLOW_CONTROL, NO_ERROR, STREAM_CLOSED), got


@case
def continuation_without_headers():
    peer = Peer()
    peer.request(1)
    peer.send(raw(CONTINUATION, END_HEADERS, 1, b"\x82"))
    peer.connection_error(PROTOCOL, STREAM_CLOSED)


@case
def push_promise_from_a_client():
    peer = Peer()
    peer.request(1, peer.fields("POST"), END_HEADERS)
    peer.send(raw(PUSH, END_HEADERS, 1, b"\0\0\0\x02" + peer.encoder.encode(peer.fields())))
    peer.connection_error(PROTOCOL)


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
                statuses[event.stream_id] = dict(event.headers)[b":status" if b":status" in dict(event.headers) else ":status"]
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


def run(selected):
    failed = 0
    for function in selected:
        try:
            function()
        except (AssertionError, OSError, ValueError, KeyError, AttributeError) as error:
            failed += 1
            print(f"FAILED {function.__name__}: {error}")
    print(f"{len(selected) - failed} passed, {failed} failed")
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description="RFC 9113 cases against a running server")
    parser.add_argument("target", help="HOST:PORT")
    parser.add_argument("--path", default="/v2/health/live", help="answers 200 to GET")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    host, _, port = arguments.target.rpartition(":")
    TARGET.update(host=host, port=int(port), path=arguments.path)
    selected = [function for function in CASES if arguments.only in function.__name__]
    return 0 if selected and run(selected) else 1


if __name__ == "__main__":
    sys.exit(main())
