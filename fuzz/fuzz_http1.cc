// HTTP/1.1 on the server's side: a connection's bytes, in random pieces and whole, give the same answers.
//   [ seed | bytes of the connection ]
#include <fmt/format.h>

#include <memory>
#include <string>

#include "fuzz_input.h"
#include "io/sim/sim_world.h"
#include "net/server.h"
#include "net/test_client.h"

namespace {

using namespace sluice;
using namespace sluice::net;

// Answers what it was asked, so that a different reading is a different answer.
class Mirror final : public Service {
 public:
  std::unique_ptr<RequestHandler> open(Exchange& exchange) override { return std::make_unique<Handler>(exchange); }

 private:
  class Handler final : public RequestHandler {
   public:
    explicit Handler(Exchange& exchange) : exchange_(exchange) {}
    void on_data(Bytes chunk) override { body_ += as_text(chunk); }
    void on_end() override {
      const RequestHead& head = exchange_.head();
      std::string text = fmt::format("{} {}\n", method_name(head.method), head.target);
      for (std::size_t i = 0; i < head.headers.size(); ++i) {
        const auto [name, value] = head.headers.at(i);
        text.append(name).append("=").append(value).append("\n");
      }
      Payload payload;
      payload.emplace_back(text + body_);
      exchange_.respond({}, std::move(payload));
    }
    void on_abort(const Error&) override {}

   private:
    Exchange& exchange_;
    std::string body_;
  };
};

std::string answers(std::string_view bytes, std::uint64_t seed, std::size_t max_piece_bytes) {
  io::SimNetworkOptions network;
  network.max_piece_bytes = max_piece_bytes;
  io::SimWorld world(seed, network);
  Mirror mirror;
  HttpServer server(world.make_loop("server"), mirror, {.max_body_bytes = 3000}, nullptr);
  const auto at = server.listen({.host = "server", .port = 0}, {});
  SLUICE_CHECK(at.has_value(), "the simulated server listens");
  TestClient client(world.make_loop("client"), *at);
  client.send(bytes);
  world.run_for(std::chrono::milliseconds(20));
  if (!client.ended) client.end();
  SLUICE_CHECK(world.run_until([&] { return client.ended; }, std::chrono::seconds(5)), "the connection ends");
  std::string received = client.received;
  // Whether "100 Continue" is due depends on what has arrived.
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t n = 0; (n = received.find(kContinue)) != std::string::npos;) received.erase(n, kContinue.size());
  return received;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t seed = input.byte();
  const std::string_view bytes = input.rest();
  // HTTP/2 has its own framing, in which a reset may overtake an answer.
  if (bytes.starts_with("PRI ")) return 0;
  const std::string whole = answers(bytes, 1, std::size_t{1} << 20);
  const std::string pieces = answers(bytes, seed, 1 + seed % 32);
  SLUICE_CHECK(whole == pieces, "the same bytes in other pieces were answered differently");
  return 0;
}
