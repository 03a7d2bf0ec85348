#include <charconv>

#include <fmt/format.h>

#include "io/loop.h"

namespace sluice::io {

std::string to_string(const Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

namespace {

std::unexpected<Error> refuse(std::string_view text, std::string_view reason) {
  return fail(Code::kInvalidArgument,
              fmt::format("address '{}' {}; expected host:port, such as 127.0.0.1:8000 or [::1]:8000", text, reason));
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse(text, "has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return refuse(text, "has a '[' without its ']' before the port");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return refuse(text, "has no IPv6 address in its brackets");
  } else if (host.find(':') != std::string_view::npos) {
    return refuse(text, "has an IPv6 address without brackets");
  }
  if (host.empty()) return refuse(text, "has no host");
  if (host.find_first_of("[]/@ \t\r\n") != std::string_view::npos) return refuse(text, "has a host that is none");
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc() || end != port_text.data() + port_text.size()) {
    return refuse(text, fmt::format("has the port '{}', which is no number from 0 to 65535", port_text));
  }
  return Endpoint{std::string(host), port};
}

}  // namespace sluice::io
