// A seeded generator (xoshiro256**, Blackman and Vigna, 2018): the same seed gives the same numbers on
// every machine. Nothing draws from std::random_device except io, which seeds a process.
#pragma once

#include <cstdint>

namespace sluice {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next();                                   // uniform over all 64-bit values
  std::uint64_t below(std::uint64_t limit);               // uniform over [0, limit); limit >= 1
  std::int64_t between(std::int64_t low, std::int64_t high);  // uniform over [low, high]
  double unit();                                          // uniform over [0, 1)
  bool chance(double p) { return unit() < p; }
  double exponential(double mean);                        // Poisson arrivals

 private:
  std::uint64_t state_[4];
};

}  // namespace sluice
