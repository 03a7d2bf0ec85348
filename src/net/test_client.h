// A bare connection for tests: sends given bytes, gathers what comes.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "io/loop.h"

namespace sluice::net {

class TestClient final : private io::StreamEvents {
 public:
  TestClient(io::Loop& loop, const io::Endpoint& to) {
    loop.connect(to, loop.now() + std::chrono::seconds(5), [this](Result<std::unique_ptr<io::Stream>> stream) {
      if (!stream) {
        ended = true;
        return;
      }
      stream_ = std::move(*stream);
      stream_->set_events(this);
      stream_->want_read();
      write();
    });
  }
  ~TestClient() {
    if (stream_) stream_->close();
  }

  void send(std::string_view bytes) {
    out_ += bytes;
    write();
  }
  void end() { stream_->shutdown_write(); }
  void close() { stream_->close(); }
  // Bytes stay in the network until reading goes on.
  void set_reading(bool reading) {
    if (std::exchange(reading_, reading) || !reading || !stream_) return;
    stream_->want_read();
  }

  std::string received;
  bool ended = false;   // the peer closed, or the connection broke
  bool broken = false;  // the latter

 private:
  void on_readable() override {
    std::array<std::byte, 65536> space;
    while (reading_) {
      const io::IoResult result = stream_->read(space);
      if (result.state == io::IoState::kWouldBlock) return stream_->want_read();
      if (result.state != io::IoState::kOk) {
        broken = result.state == io::IoState::kFailed;
        ended = true;
        return;
      }
      received += as_text(Bytes(space).first(result.bytes));
    }
  }
  void on_writable() override { write(); }
  void write() {
    while (stream_ && !out_.empty()) {
      const Bytes part = as_bytes(out_);
      const io::IoResult result = stream_->write({&part, 1});
      if (result.state == io::IoState::kWouldBlock) return stream_->want_write();
      if (result.state != io::IoState::kOk) return;
      out_.erase(0, result.bytes);
    }
  }

  std::unique_ptr<io::Stream> stream_;
  std::string out_;
  bool reading_ = true;
};

}  // namespace sluice::net
