// The sizes of an arena's blocks: multiples of 64 B up to 256 B, then four per power of two, so that at
// most a fifth of a block is lost to rounding.
//   64 128 192 256 | 320 384 448 512 | 640 768 896 1024 | 1280 ...
#pragma once

#include <bit>
#include <cstddef>

namespace sluice {

inline constexpr std::size_t kSizeClassCount = 160;

// Inverse of class_of_size: the largest size that the class holds.
constexpr std::size_t size_of_class(std::size_t size_class) {
  constexpr std::size_t kUnit = 64;
  if (size_class < 4) return kUnit * (size_class + 1);
  const std::size_t octave = size_class / 4 - 1;
  return kUnit * ((size_class % 4 + 5) << octave);
}

inline constexpr std::size_t kMaxClassBytes = size_of_class(kSizeClassCount - 1);

// size <= kMaxClassBytes; 0 is held by the smallest.
constexpr std::size_t class_of_size(std::size_t size) {
  const std::size_t units = size == 0 ? 0 : (size - 1) / 64;
  if (units < 4) return units;
  const std::size_t octave = static_cast<std::size_t>(std::bit_width(units)) - 3;
  return 4 * (octave + 1) + ((units >> octave) & 3);
}

}  // namespace sluice
