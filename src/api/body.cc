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

Status BodyCollector::allocate(std::size_t body_bytes) {
  json_bytes_ = json_length_.value_or(body_bytes);
  if (json_bytes_ > body_bytes) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("inference-header-content-length is {}, but the body has only {} bytes", json_bytes_, body_bytes));
  }
  binary_bytes_ = body_bytes - json_bytes_;
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
    if (chunk.size() > max_bytes_ - chunks_.size()) {
      return fail(Code::kResourceExhausted, fmt::format("the body is larger than the limit of {} bytes", max_bytes_));
    }
    chunks_ += as_text(chunk);
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

Result<oip::JsonBody> BodyCollector::finish() {
  if (!length_known_) {
    length_known_ = true;
    if (auto status = allocate(chunks_.size()); !status) return std::unexpected(std::move(status.error()));
    if (auto status = append(as_bytes(chunks_)); !status) return std::unexpected(std::move(status.error()));
    chunks_ = {};
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
