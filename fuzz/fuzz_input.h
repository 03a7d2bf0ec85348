// What the fuzz targets share: an input is a few bytes that choose how, then the bytes that are read. Each target
// ends the process (SLUICE_CHECK) when a property does not hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "tensor/tensor.h"

namespace sluice::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

inline std::string joined(const Payload& payload) {
  std::string out;
  for (const Slice& slice : payload) out.append(as_text(slice.view()));
  return out;
}

}  // namespace sluice::fuzz
