#include "net/client_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sluice::net {

bool deliver(ClientCall& call, Bytes bytes, std::size_t max_body_bytes) {
  call.body_bytes += bytes.size();
  if (call.body_bytes > max_body_bytes) return false;
  while (!bytes.empty() && !call.cancelled) {
    const MutableBytes target = call.handler->body_target();
    if (target.empty()) {
      call.handler->on_data(bytes);
      return true;
    }
    const std::size_t n = std::min(target.size(), bytes.size());
    std::memcpy(target.data(), bytes.data(), n);
    bytes = bytes.subspan(n);
    call.handler->on_placed(n);
  }
  return true;
}

bool deliver_placed(ClientCall& call, std::size_t bytes, std::size_t max_body_bytes) {
  call.body_bytes += bytes;
  if (call.body_bytes > max_body_bytes) return false;
  call.handler->on_placed(bytes);
  return true;
}

Error body_limit_error(std::size_t max_body_bytes) {
  return {Code::kResourceExhausted, fmt::format("the response's body exceeds the limit of {} bytes", max_body_bytes)};
}

}  // namespace sluice::net
