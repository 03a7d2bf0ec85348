#include "base/random.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Random, SameSeedSameNumbersOtherSeedOthers) {
  Random a(7), b(7), c(8);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const auto value = a.next();
    EXPECT_EQ(value, b.next());
    equal += value == c.next() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, BoundsHoldAndEveryValueIsDrawn) {
  Random random(1);
  int seen[5] = {};
  for (int i = 0; i < 1000; ++i) {
    const auto value = random.between(-2, 2);
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 2);
    ++seen[value + 2];
    const double unit = random.unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
  }
  for (const int count : seen) EXPECT_GT(count, 120);
}

}  // namespace
}  // namespace sluice
