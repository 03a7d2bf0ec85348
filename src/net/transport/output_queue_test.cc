#include "net/transport/output_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "net/transport/body_queue.h"

namespace sluice::net {
namespace {

// Takes everything out as a socket would: some parts at a time, some bytes of them.
std::string drain(OutputQueue& queue, Random& random) {
  std::string out;
  while (!queue.empty()) {
    std::array<Bytes, 5> parts;
    const std::size_t n = queue.gather(parts);
    std::string bytes;
    for (std::size_t i = 0; i < n; ++i) bytes += as_text(parts[i]);
    const std::size_t taken = 1 + random.below(bytes.size());
    out += bytes.substr(0, taken);
    queue.consume(taken);
  }
  return out;
}

std::string random_text(Random& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

TEST(OutputQueueTest, SmallPiecesShareOnePart) {
  BlockPool pool;
  OutputQueue queue(pool);
  for (int i = 0; i < 100; ++i) queue.append("abc");
  EXPECT_EQ(queue.parts(), 1u);
  EXPECT_EQ(queue.size(), 300u);
}

TEST(OutputQueueTest, LargeSlicesAreReferredToAndReleasedOnceSent) {
  BlockPool pool;
  OutputQueue queue(pool);
  std::vector<std::byte> memory(100000);
  int released = 0;
  queue.append("head");
  queue.append(Slice(memory, wrap_foreign(memory.data(), memory.size(), [](void* n) { ++*static_cast<int*>(n); },
                                          &released)));
  queue.append("tail");
  std::array<Bytes, 8> parts;
  ASSERT_EQ(queue.gather(parts), 3u);
  EXPECT_EQ(parts[1].data(), memory.data());
  queue.consume(4 + 99999);
  EXPECT_EQ(released, 0);
  queue.consume(1);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(queue.size(), 4u);
}

TEST(OutputQueueTest, EveryOrderOfPiecesComesOutAsItWentIn) {
  BlockPool pool;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    OutputQueue queue(pool);
    std::string in, out;
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(random, random.below(random.chance(0.2) ? 40000 : 300));
      in += text;
      if (random.chance(0.5)) {
        queue.append(text);
      } else {
        queue.append(Slice(text));
      }
      if (random.chance(0.1)) out += drain(queue, random);
    }
    out += drain(queue, random);
    EXPECT_TRUE(in == out) << "seed " << seed;
  }
}

TEST(BodyQueueTest, AnySplitOfABodyComesOutAsItWentIn) {
  BlockPool pool;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    OutputQueue queue(pool);
    BodyQueue body;
    std::string in, out;
    for (int i = 0; i < 100; ++i) {
      Payload payload;
      for (std::uint64_t n = random.below(4); n > 0; --n) {
        const std::string text = random_text(random, random.below(random.chance(0.3) ? 50000 : 100));
        in += text;
        payload.emplace_back(text);
      }
      body.push(std::move(payload));
      while (!body.empty() && random.chance(0.7)) {
        body.move_to(queue, 1 + random.below(std::min<std::size_t>(body.size(), 16384)));
        if (random.chance(0.5)) out += drain(queue, random);
      }
    }
    body.move_to(queue, body.size());
    out += drain(queue, random);
    EXPECT_TRUE(in == out) << "seed " << seed;
    EXPECT_EQ(body.size(), 0u);
  }
}

}  // namespace
}  // namespace sluice::net
