// A byte stream between two peers, driven by readiness: the owner tries, and when the stream would
// block it asks to be told. Real streams are sockets, simulated ones live in virtual time (io/sim).
//
// Why readiness and not completion: an idle connection needs no buffer, the reader decides at the
// moment of reading where the bytes land (a tensor, or a shared block), and the simulation is small.
//
// Thread: everything here is used on the stream's loop only. Owner: the connection, by unique_ptr.
// After close() nothing is delivered any more; destroying a stream closes it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace sluice::io {

class Loop;

class StreamEvents {
 public:
  // Each is a one-shot answer to want_read() / want_write(); a spurious call is allowed.
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;

 protected:
  ~StreamEvents() = default;
};

enum class IoState : std::uint8_t {
  kOk,          // `bytes` were moved, at least one
  kWouldBlock,  // none now: ask with want_read() or want_write()
  kEnd,         // the peer has closed its side (read only)
  kFailed,      // the stream is dead; `error` says why
};

struct IoResult {
  IoState state = IoState::kOk;
  std::size_t bytes = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Who is told. Set once, before want_*; must outlive the stream or close() must come first.
  virtual void set_events(StreamEvents* events) = 0;

  // Reads at most into.size() bytes, never blocks. into is not empty.
  virtual IoResult read(MutableBytes into) = 0;
  // Writes a prefix of the concatenation of at most 64 parts, never blocks.
  virtual IoResult write(std::span<const Bytes> parts) = 0;

  virtual void want_read() = 0;
  virtual void want_write() = 0;

  // Sends the end of our side after what was written; reading goes on.
  virtual void shutdown_write() = 0;
  virtual void close() = 0;

  // Why the stream is dead, after kFailed: kUnavailable with the system's reason.
  virtual Error error() const = 0;
  virtual const std::string& peer() const = 0;  // "127.0.0.1:53122"
};

// How many parts one write() takes.
inline constexpr std::size_t kMaxWriteParts = 64;

}  // namespace sluice::io
