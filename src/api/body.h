// Collects a REST request's body into buffers of the arena: the JSON part with room behind it for the parser's
// padding, the binary tensors apart and aligned. With a known length the socket is read straight into them; without
// one the whole body is collected in a buffer that grows, and the tensors are copied out of it at the end.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "net/http.h"
#include "tensor/tensor.h"
#include "wire/oip/json.h"

namespace sluice::api {

// Bytes that a JSON buffer has beyond its text, zeroed (simdjson reads that far).
inline constexpr std::size_t kJsonPaddingBytes = 64;

// Room for a body whose length is not known, to begin with; it doubles.
inline constexpr std::size_t kFirstBodyBytes = 16 * 1024;

class BodyCollector {
 public:
  BodyCollector(Arena& arena, std::size_t max_bytes) : arena_(arena), max_bytes_(max_bytes) {}

  // Reads content-length and inference-header-content-length. kInvalidArgument names the header's value,
  // kResourceExhausted the limit.
  Status begin(const net::RequestHead& head);
  MutableBytes target();        // where the next bytes belong; empty when the length is not known
  void placed(std::size_t bytes) { filled_ += bytes; }
  Status append(Bytes chunk);   // kResourceExhausted beyond max_bytes
  // kInvalidArgument when the JSON part is longer than the body.
  Result<oip::JsonBody> finish();
  // inference-header-content-length: 0 = the body is the one input's raw data.
  bool raw() const { return json_length_ == 0; }

 private:
  Status split(std::size_t body_bytes);     // into json_bytes_ and binary_bytes_
  Status allocate(std::size_t body_bytes);  // both parts, the length being known
  Status grow(std::size_t body_bytes);      // json_ takes so many, and padding; else twice what it was
  Status settle();

  Arena& arena_;
  std::size_t max_bytes_;
  std::optional<std::size_t> json_length_;  // the header's value
  std::size_t json_bytes_ = 0, binary_bytes_ = 0;
  BufferRef json_, binary_;
  std::size_t filled_ = 0;    // over both parts
  bool length_known_ = false;
};

}  // namespace sluice::api
