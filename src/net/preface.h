// Which protocol a connection speaks, from its first bytes: HTTP/2 with prior knowledge opens with 24 fixed
// bytes (RFC 9113, 3.4), of which "PRI " is no method of HTTP/1.1. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "net/http.h"

namespace sluice::net {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class PrefaceDetector {
 public:
  // Looks at more bytes; nullopt while they may still become the preface.
  std::optional<Protocol> feed(Bytes bytes);
  // Bytes of earlier calls that were not decided on: they are a prefix of the preface, and belong before
  // the bytes of the call that decided.
  std::string_view undecided() const { return kHttp2Preface.substr(0, before_); }

 private:
  std::size_t matched_ = 0;
  std::size_t before_ = 0;
};

}  // namespace sluice::net
