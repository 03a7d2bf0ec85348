#include "net/h1/chunked_decoder.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::net::h1 {
namespace {

// Decodes the text in pieces of `piece` bytes; what came of the body is appended to `body`.
ChunkedDecoder decode(const std::string& text, std::size_t piece, std::string& body) {
  ChunkedDecoder decoder;
  for (std::size_t at = 0; at < text.size() && decoder.state() == ChunkedDecoder::State::kMore;) {
    const std::string_view part = std::string_view(text).substr(at, piece);
    const auto step = decoder.next(as_bytes(part));
    body += as_text(step.data);
    decoder.take(step.data.size());
    at += step.framing + step.data.size();
  }
  return decoder;
}

TEST(ChunkedDecoder, SaysTheSameInPiecesOfAnySize) {
  const std::string text = "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX-Check:  7 \r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    std::string body;
    const ChunkedDecoder decoder = decode(text, piece, body);
    ASSERT_EQ(decoder.state(), ChunkedDecoder::State::kEnd) << piece;
    EXPECT_EQ(body, "hello world");
    Headers trailers;
    decoder.trailers(trailers);
    EXPECT_EQ(trailers.get("x-check"), "7");
  }
}

// A large body does not buy room for trailers: they are kept in memory.
TEST(ChunkedDecoder, TrailersAreBoundedWhateverTheBody) {
  std::string text = "100000\r\n" + std::string(0x100000, 'b') + "\r\n0\r\n";
  const std::string line = "x: " + std::string(1000, 'v') + "\r\n";
  for (int i = 0; i < 20; ++i) text += line;
  std::string body;
  const ChunkedDecoder decoder = decode(text + "\r\n", 65536, body);
  EXPECT_EQ(decoder.state(), ChunkedDecoder::State::kBad);
  EXPECT_EQ(decoder.problem(), "too many bytes of trailers");
  EXPECT_EQ(body.size(), 0x100000U);
}

TEST(ChunkedDecoder, RefusesWhatIsNotChunked) {
  for (const std::string text : {"g\r\n", "\r\n", "5\nhello", "5\r\nhelloX", "ffffffffffffffff\r\n",
                                 "0\r\nno colon\r\n"}) {
    std::string body;
    EXPECT_EQ(decode(text, 64, body).state(), ChunkedDecoder::State::kBad) << text;
  }
}

}  // namespace
}  // namespace sluice::net::h1
