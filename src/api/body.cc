#include "api/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sluice::api {

Status BodyCollector::begin(const net::RequestHead& head) {
  if (const auto header = head.headers.get("inference-header-content-length")) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(header->data(), header->data() + header->size(), value);
    if (error != std::errc{} || end != header->data() + header->size()) {
      return fail(Code::kInvalidArgument,
                  fmt::format("inference-header-content-length '{}' is not a length in bytes", *header));
    }
    json_length_ = value;
  }
  if (!head.content_length) return {};
  if (*head.content_length > max_bytes_) {
    return fail(Code::kResourceExhausted,
                fmt::format("the body has {} bytes, the limit is {}", *head.content_length, max_bytes_));
  }
  length_known_ = true;
  return allocate(*head.content_length);
}

Status BodyCollector::split(std::size_t body_bytes) {
  json_bytes_ = json_length_.value_or(body_bytes);
  if (json_bytes_ > body_bytes) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("inference-header-content-length is {}, but the body has only {} bytes", json_bytes_, body_bytes));
  }
  binary_bytes_ = body_bytes - json_bytes_;
  return {};
}

Status BodyCollector::allocate(std::size_t body_bytes) {
  if (auto status = split(body_bytes); !status) return status;
  auto json = arena_.allocate(json_bytes_ + kJsonPaddingBytes);
  if (!json) return std::unexpected(std::move(json.error()));
  json_ = std::move(*json);
  std::memset(json_.data() + json_bytes_, 0, kJsonPaddingBytes);
  if (binary_bytes_ == 0) return {};
  auto binary = arena_.allocate(binary_bytes_);
  if (!binary) return std::unexpected(std::move(binary.error()));
  binary_ = std::move(*binary);
  return {};
}

MutableBytes BodyCollector::target() {
  if (!length_known_) return {};
  if (filled_ < json_bytes_) return {json_.data() + filled_, json_bytes_ - filled_};
  const std::size_t offset = filled_ - json_bytes_;
  if (offset >= binary_bytes_) return {};
  return {binary_.data() + offset, binary_bytes_ - offset};
}

Status BodyCollector::append(Bytes chunk) {
  if (!length_known_) {
    if (chunk.size() > max_bytes_ - filled_) {
      return fail(Code::kResourceExhausted, fmt::format("the body is larger than the limit of {} bytes", max_bytes_));
    }
    if (auto status = grow(filled_ + chunk.size()); !status) return status;
    std::memcpy(json_.data() + filled_, chunk.data(), chunk.size());
    filled_ += chunk.size();
    return {};
  }
  while (!chunk.empty()) {
    const MutableBytes room = target();
    if (room.empty()) return fail(Code::kInvalidArgument, "the body is longer than its content-length");
    const std::size_t take = std::min(room.size(), chunk.size());
    std::memcpy(room.data(), chunk.data(), take);
    filled_ += take;
    chunk = chunk.subspan(take);
  }
  return {};
}

Status BodyCollector::grow(std::size_t body_bytes) {
  const std::size_t needed = body_bytes + kJsonPaddingBytes;
  if (needed <= json_.size()) return {};
  const std::size_t doubled = std::min(std::max(2 * json_.size(), kFirstBodyBytes), max_bytes_ + kJsonPaddingBytes);
  auto larger = arena_.allocate(std::max(needed, doubled));
  if (!larger) return std::unexpected(std::move(larger.error()));
  if (filled_ > 0) std::memcpy(larger->data(), json_.data(), filled_);
  json_ = std::move(*larger);
  return {};
}

// The body came without a length and lies in json_ as a whole: the tensors behind the JSON part go where they are
// aligned, and the JSON part gets its padding.
Status BodyCollector::settle() {
  if (auto status = split(filled_); !status) return status;
  if (auto status = grow(filled_); !status) return status;
  if (binary_bytes_ > 0) {
    auto binary = arena_.allocate(binary_bytes_);
    if (!binary) return std::unexpected(std::move(binary.error()));
    binary_ = std::move(*binary);
    std::memcpy(binary_.data(), json_.data() + json_bytes_, binary_bytes_);
  }
  std::memset(json_.data() + json_bytes_, 0, kJsonPaddingBytes);
  return {};
}

Result<oip::JsonBody> BodyCollector::finish() {
  if (!length_known_) {
    if (auto status = settle(); !status) return std::unexpected(std::move(status.error()));
  }
  if (filled_ != json_bytes_ + binary_bytes_) {
    return fail(Code::kInvalidArgument,
                fmt::format("the body ended after {} of {} bytes", filled_, json_bytes_ + binary_bytes_));
  }
  oip::JsonBody body;
  body.json = as_text({json_.data(), json_bytes_});
  body.binary.datatype = DataType::kUint8;
  body.binary.shape = {static_cast<std::int64_t>(binary_bytes_)};
  body.binary.data = binary_.bytes();
  body.binary.owner = binary_;
  body.readable_past_json = kJsonPaddingBytes;
  return body;
}

}  // namespace sluice::api
