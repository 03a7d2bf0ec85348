// The server's whole request path on prepared bytes, in virtual time: HTTP/2 -> gRPC -> ModelInferRequest ->
// queue and batcher -> identity model -> response bytes. Nothing in it depends on the machine, so that the
// instructions that callgrind counts repeat exactly.
//   bench_instructions REQUESTS TENSOR_BYTES
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "api/oip_service.h"
#include "engine/identity/identity_engine.h"
#include "io/sim/sim_world.h"
#include "model/infer.h"
#include "net/server.h"
#include "wire/grpc/infer_reader.h"

namespace {

using namespace sluice;

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(size >> shift & 255);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 255);
  return out + payload;
}

// HPACK (RFC 7541): a literal without indexing, its name from the static table or spelled out.
std::string literal(std::uint8_t name_index, const std::string& value) {
  return std::string(1, static_cast<char>(name_index)) + static_cast<char>(value.size()) + value;
}
std::string literal(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

std::string header_block() {
  return std::string("\x83\x86", 2) +  // :method POST, :scheme http
         literal(4, "/inference.GRPCInferenceService/ModelInfer") + literal(1, "127.0.0.1:8001") +
         literal("content-type", "application/grpc") + literal("te", "trailers") + literal("user-agent", "bench/1");
}

std::string request_message(Arena& arena, std::size_t bytes) {
  InferRequest request;
  request.model_name = "identity";
  Tensor tensor;
  tensor.datatype = DataType::kFp32;
  tensor.shape = {1, static_cast<std::int64_t>(bytes / 4)};
  tensor.owner = *arena.allocate(bytes);
  std::fill_n(tensor.owner.data(), bytes, std::byte{0});
  tensor.data = tensor.owner.bytes();
  request.inputs.push_back({"INPUT0", tensor, {}});
  std::string message;
  for (const Slice& slice : grpc_wire::encode_infer_request(request)) message += as_text(slice.view());
  return message;
}

// Writes requests as fast as flow control lets it, reads and drops what comes; opens both windows wide.
class Caller final : public io::StreamEvents {
 public:
  Caller(std::unique_ptr<io::Stream> stream, int requests, std::string message)
      : stream_(std::move(stream)), requests_(requests), message_(std::move(message)) {
    const std::string initial_window("\0\x04\x7f\xff\xff\xff", 6);
    const std::string connection_window("\x7f\x00\x00\x00", 4);
    out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, initial_window) + frame(8, 0, 0, connection_window);
    stream_->set_events(this);
    stream_->want_read();
    on_writable();
  }
  void on_readable() override {
    char buffer[65536];
    while (stream_->read({reinterpret_cast<std::byte*>(buffer), sizeof buffer}).state == io::IoState::kOk) {
    }
    stream_->want_read();
  }
  void on_writable() override {
    while (refill()) {
      const Bytes part = as_bytes(out_);
      const auto result = stream_->write({&part, 1});
      if (result.state != io::IoState::kOk) return stream_->want_write();
      out_.erase(0, result.bytes);
    }
  }

 private:
  bool refill() {
    if (out_.empty() && sent_ < requests_) {
      const auto id = static_cast<std::uint32_t>(2 * sent_ + 1);
      out_ = frame(1, 4, id, header_block()) + frame(0, 1, id, message_);
      ++sent_;
    }
    return !out_.empty();
  }
  std::unique_ptr<io::Stream> stream_;
  int requests_, sent_ = 0;
  std::string message_, out_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_instructions REQUESTS TENSOR_BYTES (at most 16000)\n");
    return 2;
  }
  const int requests = std::atoi(argv[1]);
  const std::size_t bytes = std::strtoul(argv[2], nullptr, 10);
  io::SimWorld world(1, {.min_latency = std::chrono::microseconds(1), .max_latency = std::chrono::microseconds(1)});
  io::Loop& loop = world.make_loop("server");
  io::Loop& client_loop = world.make_loop("client");
  io::ComputePool compute({.threads = 1});
  Arena arena({.name = "bench"});
  const Log log({.level = LogLevel::kOff}, [] { return std::int64_t{0}; });
  serving::EngineSet engines;
  serving::ModelRegistry models(engines, compute, loop, log);
  api::ServerState state{.models = models, .arena = arena, .metadata = {}, .limits = {}, .log = log};
  const auto service = api::make_oip_service(state);
  net::HttpServer server(loop, *service, {}, &log);

  ModelConfig config;
  config.name = "identity";
  config.backend = "identity";
  config.max_batch_size = 64;
  config.inputs = {{.name = "INPUT0", .datatype = DataType::kFp32, .dims = {-1}}};
  config.outputs = {{.name = "OUTPUT0", .datatype = DataType::kFp32, .dims = {-1}}};
  config.dynamic_batching.emplace();
  config.run_inline = true;
  const auto engine = engine::make_identity_engine({compute, arena, loop});
  models.publish(std::make_shared<serving::ServedModel>(config, "1", *engine->load({"", config}), loop));

  const auto at = server.listen({"127.0.0.1", 0}, {});
  std::unique_ptr<Caller> caller;
  client_loop.connect(*at, kNever, [&](Result<std::unique_ptr<io::Stream>> stream) {
    caller = std::make_unique<Caller>(std::move(*stream), requests, request_message(arena, bytes));
  });
  const auto served = [&] {
    return models.ready_models()[0]->stats()->snapshot().success.count == static_cast<std::uint64_t>(requests);
  };
  for (int i = 0; i < 100'000 && !served(); ++i) world.run_for(std::chrono::milliseconds(10));
  fmt::print("{} requests of {} bytes\n", models.ready_models()[0]->stats()->snapshot().success.count, bytes);
  const bool all = served();
  caller.reset();
  world.run_for(std::chrono::seconds(1));
  return all ? 0 : 1;
}
