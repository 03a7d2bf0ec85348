#include "base/random.h"

#include <bit>
#include <cmath>

namespace sluice {
namespace {

// SplitMix64 spreads a seed over the state, so that seeds 1, 2, 3 give unrelated streams.
std::uint64_t split_mix(std::uint64_t& x) {
  std::uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (auto& word : state_) word = split_mix(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t limit) {
  // Lemire's multiply-shift; the rejection keeps it exactly uniform.
  for (;;) {
    const auto product = static_cast<unsigned __int128>(next()) * limit;
    const auto low = static_cast<std::uint64_t>(product);
    if (low >= (0 - limit) % limit) return static_cast<std::uint64_t>(product >> 64);
  }
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t draw = width == UINT64_MAX ? next() : below(width + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::exponential(double mean) { return -mean * std::log1p(-unit()); }

}  // namespace sluice
