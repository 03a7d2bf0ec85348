#!/usr/bin/python3
"""RFC 9113 seen from a client that breaks it: each case opens a connection of its own to a running server, sends
frames (hyperframe, hpack) and looks at what comes back. The peer is judged by what the RFC allows: where it says
"stream or connection error", both pass.

    h2_cases.py HOST:PORT [--path /v2/health/live] [--post-path /v2/repository/index] [--only WORD]

The first path answers 200 to GET, the second waits for the body of a POST. Last line: `N passed, N failed`.
"""

import argparse
import importlib
import struct
import sys

from hyperframe import frame as hf

from h2_peer import (ACK, CASES, COMPRESSION, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL, FRAME_SIZE,
                     GOAWAY, HEADERS, NO_ERROR, PADDED, PING, PREFACE, PRIORITY, PROTOCOL, PUSH, REFUSED, RST,
                     SETTINGS, STREAM_CLOSED, TARGET, WINDOW, Peer, case, raw)


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
    # nghttp2 ignores what could be the trailers of a stream that has been reset meanwhile.
    peer = Peer()
    peer.request(1)
    peer.request(1)
    peer.error_or_no_effect(STREAM_CLOSED, PROTOCOL)


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
    peer.error_or_no_effect(PROTOCOL, STREAM_CLOSED)
    assert not any(f.stream_id == 3 and isinstance(f, hf.HeadersFrame) for f in peer.seen), "it was served"


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
                  raw(RST, 0, 0, b"\0\0\0\x08"), raw(CONTINUATION, END_HEADERS, 0, b""), raw(SETTINGS, 0, 1),
                  raw(PING, 0, 1, b"12345678"), raw(GOAWAY, 0, 1, b"\0" * 8)):
        peer = Peer()
        peer.send(frame)
        peer.connection_error(PROTOCOL)


@case
def priority_of_no_stream():
    # The server says SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218, 2.1) and does not look at the frame.
    peer = Peer()
    peer.send(raw(PRIORITY, 0, 0, b"\0\0\0\0\x10"))
    peer.error_or_no_effect(PROTOCOL)


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
    peer.stream_error(1, FLOW_CONTROL)


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
    parser.add_argument("--post-path", default="/v2/repository/index", help="reads the body of a POST")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    host, _, port = arguments.target.rpartition(":")
    TARGET.update(host=host, port=int(port), path=arguments.path, post_path=arguments.post_path)
    importlib.import_module("h2_semantics")  # its cases follow those of this file
    selected = [function for function in CASES if arguments.only in function.__name__]
    return 0 if selected and run(selected) else 1


if __name__ == "__main__":
    sys.exit(main())
