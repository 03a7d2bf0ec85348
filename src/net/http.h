// What HTTP/1.1 and HTTP/2 have in common: a request's head, a response's head, header fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace sluice::net {

// Header fields in the order of the wire, names in lower case. One block of text holds them all, so that a
// request costs one allocation for its headers and a connection can reuse it.
class Headers {
 public:
  void add(std::string_view name, std::string_view value);
  void clear();
  // The first field of that (lower-case) name.
  std::optional<std::string_view> get(std::string_view name) const;
  std::size_t size() const { return fields_.size(); }
  std::pair<std::string_view, std::string_view> at(std::size_t index) const;
  std::size_t text_bytes() const { return text_.size(); }

 private:
  struct Field {
    std::uint32_t name_begin, name_size, value_begin, value_size;
  };
  std::string text_;
  std::vector<Field> fields_;
};

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kDelete, kPatch, kOptions, kOther };
std::string_view method_name(Method method);

enum class Protocol : std::uint8_t { kHttp1, kHttp2 };

struct RequestHead {
  Method method = Method::kOther;
  Protocol protocol = Protocol::kHttp1;
  std::string target;                          // path and query, as sent
  Headers headers;                             // without HTTP/2's pseudo-headers; host holds :authority
  std::optional<std::uint64_t> content_length;
  Time received;                               // when the head was complete

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

struct ResponseHead {
  int status = 200;
  // Field names in lower case. content-length is added by net where the body's size is known.
  std::vector<std::pair<std::string, std::string>> headers;
};

using Trailers = std::vector<std::pair<std::string, std::string>>;

}  // namespace sluice::net
