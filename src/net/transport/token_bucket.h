// A bound on how often a peer may do something that costs it nothing: `burst` at once, then `per_second`. Pure.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace sluice::net {

class TokenBucket {
 public:
  TokenBucket(double burst, double per_second) : burst_(burst), per_second_(per_second), tokens_(burst) {}

  // False: this one is too many.
  bool take(Time now) {
    if (now > filled_) {
      tokens_ = std::min(burst_, tokens_ + to_seconds(now - filled_) * per_second_);
      filled_ = now;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double burst_;
  double per_second_;
  double tokens_;
  Time filled_{};
};

}  // namespace sluice::net
