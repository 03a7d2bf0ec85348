// An HTTP/1.1 client of bytes, for manners that a good client does not have: one that takes its answer in
// small sips, one that goes away in the middle, one that falls silent there. One request, one connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/function.h"
#include "base/random.h"
#include "io/loop.h"

namespace sluice::sim {

struct RawResponse {
  std::string head, body;
};

class RawClient final : public io::StreamEvents {
 public:
  struct Options {
    io::Endpoint endpoint;
    std::string request;         // head and body
    bool leaves = false;         // at a random moment, in the middle of the request or later
    bool stalls = false;         // in the middle of the request
    std::uint64_t seed = 0;
  };
  using Done = Function<void(Result<RawResponse>)>;

  // `done` once; kCancelled when it has left by intent.
  RawClient(io::Loop& loop, Options options, Done done);

  void on_readable() override;
  void on_writable() override;

 private:
  void connected(Result<std::unique_ptr<io::Stream>> stream);
  void sip();
  bool complete(RawResponse& response) const;
  void finish(Result<RawResponse> result);

  io::Loop& loop_;
  Options options_;
  Done done_;
  Random random_;
  std::size_t to_send_;
  std::size_t sent_ = 0;
  std::string received_;
  io::Timer next_sip_, leaving_;
  std::shared_ptr<bool> alive_;
  std::unique_ptr<io::Stream> stream_;
};

}  // namespace sluice::sim
