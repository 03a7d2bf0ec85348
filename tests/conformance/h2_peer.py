"""One connection to the server under test: frames sent as bytes, frames read by hyperframe, and what an RFC lets
a server do about a mistake."""

import socket
import struct
import time

import hpack
from hyperframe import frame as hf

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(NO_ERROR, PROTOCOL, INTERNAL, FLOW_CONTROL, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE, REFUSED, CANCEL,
 COMPRESSION) = range(10)
CALM = 11
WAIT_S = 5.0

CASES = []   # in the order of their definition
TARGET = {}  # host, port, path, post_path: set once by main


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
        path = TARGET["post_path" if method == "POST" else "path"]
        fields = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
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
                raise AssertionError(f"nothing decisive within {WAIT_S} s, last {self.seen[-4:]}") from None
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
            assert got is not None and not isinstance(got, hf.GoAwayFrame), f"no response: {self.seen[-4:]}"
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

    def error_or_no_effect(self, *codes):
        """An error with one of the codes, or a connection that goes on."""
        self.send(raw(PING, 0, 0, b"stillup?"))
        got = self.frames(lambda f: isinstance(f, (hf.RstStreamFrame, hf.GoAwayFrame)) or
                          (isinstance(f, hf.PingFrame) and f.opaque_data == b"stillup?"))
        assert got is None or isinstance(got, hf.PingFrame) or got.error_code in codes, f"{got} with {got.error_code}"

    def alive(self):
        self.send(raw(PING, 0, 0, b"areuthr?"))
        got = self.frames(lambda f: isinstance(f, hf.PingFrame) and f.opaque_data == b"areuthr?")
        assert got is not None, "the connection has ended"

    def serves(self, stream):
        self.request(stream)
        status, _, _ = self.response(stream)
        assert status == 200, f"status {status}"
