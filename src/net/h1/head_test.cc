#include "net/h1/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "net/h1/chunked_decoder.h"
#include "net/preface.h"

namespace sluice::net::h1 {
namespace {

using State = HeadScanner::State;

TEST(HeadScannerTest, FindsTheEndInWhateverPiecesItComes) {
  const std::string text = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
  HeadScanner whole;
  ASSERT_EQ(whole.scan(as_bytes(text)), State::kComplete);
  EXPECT_EQ(whole.begin(), 2u);
  EXPECT_EQ(text.substr(whole.end()), "body");
  for (std::size_t step = 1; step < text.size(); ++step) {
    HeadScanner scanner;
    State state = State::kMore;
    for (std::size_t n = step; state == State::kMore; n += step) {
      state = scanner.scan(as_bytes(std::string_view(text).substr(0, n)));
    }
    EXPECT_EQ(state, State::kComplete);
    EXPECT_EQ(scanner.begin(), whole.begin());
    EXPECT_EQ(scanner.end(), whole.end());
  }
}

TEST(ParseRequestHeadTest, GivesLowerCaseNamesTrimmedValuesAndTheFraming) {
  std::string target;
  Headers headers;
  ParsedRequest parsed;
  const std::string text =
      "PUT http://host:1/a?b=c HTTP/1.1\r\nHOST: x\r\nX-Padded:  \t v w \t\r\nContent-Length: 12\r\n"
      "Empty:\r\nConnection: Close\r\n\r\n";
  ASSERT_FALSE(parse_request_head(as_bytes(text), target, headers, parsed));
  EXPECT_EQ(parsed.method, Method::kPut);
  EXPECT_EQ(target, "/a?b=c");
  EXPECT_EQ(headers.get("host"), "x");
  EXPECT_EQ(headers.get("x-padded"), "v w");
  EXPECT_EQ(headers.get("empty"), "");
  EXPECT_EQ(headers.get("absent"), std::nullopt);
  EXPECT_EQ(headers.size(), 5u);
  EXPECT_EQ(parsed.framing.content_length, 12u);
  EXPECT_FALSE(parsed.framing.keep_alive);
}

TEST(ParseResponseHeadTest, NeedsNoHostAndGivesTheStatus) {
  Headers headers;
  ParsedResponse parsed;
  const std::string text = "HTTP/1.0 503 Whatever it says\r\nTransfer-Encoding: identity\r\n\r\n";
  EXPECT_TRUE(parse_response_head(as_bytes(text), headers, parsed));
  const std::string good = "HTTP/1.1 204 No Content\r\n\r\n";
  headers.clear();
  ASSERT_FALSE(parse_response_head(as_bytes(good), headers, parsed));
  EXPECT_EQ(parsed.status, 204);
  EXPECT_TRUE(parsed.framing.keep_alive);
}

std::string decode(std::string_view text, std::size_t piece, ChunkedDecoder& decoder) {
  std::string data;
  for (std::size_t at = 0; at < text.size() && decoder.state() == ChunkedDecoder::State::kMore;) {
    const ChunkedDecoder::Step step = decoder.next(as_bytes(text.substr(at, piece)));
    data += as_text(step.data);
    decoder.take(step.data.size());
    at += step.framing + step.data.size();
    EXPECT_GT(step.framing + step.data.size(), 0u);
  }
  return data;
}

TEST(ChunkedDecoderTest, DecodesTheSameInEverySplit) {
  const std::string text = "5\r\nhello\r\n00a ; ext=\"v\"\r\n0123456789\r\n0\r\nX-Sum:  12 \r\nB: c\r\n\r\nnext";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    ChunkedDecoder decoder;
    EXPECT_EQ(decode(text, piece, decoder), "hello0123456789");
    EXPECT_EQ(decoder.state(), ChunkedDecoder::State::kEnd);
    Headers trailers;
    decoder.trailers(trailers);
    EXPECT_EQ(trailers.get("x-sum"), "12");
    EXPECT_EQ(trailers.get("b"), "c");
  }
}

TEST(ChunkedDecoderTest, OneByteChunksAreAllowedEndlessFramingIsNot) {
  std::string slow;
  for (int i = 0; i < 20000; ++i) slow += "1\r\nx\r\n";
  ChunkedDecoder decoder;
  EXPECT_EQ(decode(slow + "0\r\n\r\n", slow.size(), decoder).size(), 20000u);
  EXPECT_EQ(decoder.state(), ChunkedDecoder::State::kEnd);
  ChunkedDecoder endless;
  decode("1\r\nx\r\n0\r\nx: " + std::string(20000, 'x'), 1000, endless);
  EXPECT_EQ(endless.state(), ChunkedDecoder::State::kBad);
}

TEST(PrefaceDetectorTest, DecidesAtTheFirstByteThatDiffers) {
  EXPECT_EQ(PrefaceDetector().feed(as_bytes("POST / HTTP/1.1\r\n")), Protocol::kHttp1);
  EXPECT_EQ(PrefaceDetector().feed(as_bytes(kHttp2Preface)), Protocol::kHttp2);
  PrefaceDetector detector;
  for (const char c : kHttp2Preface.substr(0, 23)) {
    EXPECT_EQ(detector.feed(as_bytes(std::string_view(&c, 1))), std::nullopt);
  }
  EXPECT_EQ(detector.feed(as_bytes("x")), Protocol::kHttp1);
  EXPECT_EQ(detector.undecided(), kHttp2Preface.substr(0, 23));
}

}  // namespace
}  // namespace sluice::net::h1
