#include "net/transport/stall_list.h"

#include <gtest/gtest.h>

#include <memory>

#include "net/transport/token_bucket.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Waiter {
  StallList<Waiter>::Node node{*this};
};

constexpr Time at(int seconds_in) { return Time{} + seconds(seconds_in); }

TEST(StallListTest, TheOldestIsTheOneWithoutProgress) {
  StallList<Waiter> list;
  Waiter a, b;
  EXPECT_EQ(list.oldest(), nullptr);
  EXPECT_EQ(list.deadline(seconds(5)), kNever);
  list.touch(a.node, at(1));
  list.touch(b.node, at(2));
  EXPECT_EQ(list.oldest(), &a);
  list.touch(a.node, at(3));
  EXPECT_EQ(list.oldest(), &b);
  EXPECT_EQ(list.deadline(seconds(5)), at(7));
  b.node.unlink();
  b.node.unlink();
  EXPECT_FALSE(b.node.linked());
  EXPECT_EQ(list.oldest(), &a);
}

TEST(StallListTest, DestructionUnlinksInEitherOrder) {
  Waiter outlives;
  {
    StallList<Waiter> list;
    {
      Waiter gone;
      list.touch(gone.node, at(1));
    }
    EXPECT_EQ(list.oldest(), nullptr);
    list.touch(outlives.node, at(2));
  }
  EXPECT_FALSE(outlives.node.linked());
}

TEST(TokenBucketTest, AllowsABurstAndThenTheRate) {
  TokenBucket bucket(3, 2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(at(10)));
  EXPECT_FALSE(bucket.take(at(10)));
  EXPECT_FALSE(bucket.take(at(10) + milliseconds(499)));
  EXPECT_TRUE(bucket.take(at(10) + milliseconds(500)));
  EXPECT_FALSE(bucket.take(at(10) + milliseconds(501)));
  // Never more than the burst, however long it rested.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(at(1000)));
  EXPECT_FALSE(bucket.take(at(1000)));
}

}  // namespace
}  // namespace sluice::net
