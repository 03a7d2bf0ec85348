// InferReader: whatever the pieces, the outcome is that of the whole; what was read can be written and read again.
//   [ kind and framing | size of pieces | message ]
#include "fuzz_input.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/infer_reader.h"

namespace {

using namespace sluice;
using namespace sluice::grpc_wire;

constexpr std::size_t kMaxBytes = 64 * 1024;

Arena& arena() {
  static Arena arena{Arena::Options{.name = "fuzz", .max_bytes = 16 << 20}};
  return arena;
}

InferReaderLimits limits() {
  InferReaderLimits limits{.max_message_bytes = kMaxBytes, .max_metadata_bytes = kMaxBytes / 4};
  limits.request.max_tensor_bytes = kMaxBytes / 2;
  limits.request.max_inputs = 8;
  limits.request.max_outputs = 8;
  limits.request.max_parameters = 8;
  return limits;
}

// How the bytes come in; `piece` 0: at once.
struct Manner {
  std::size_t piece = 0;
  bool place = false;  // tensors are filled by the caller
};

// The bytes that are written for what was read, or the error as text.
struct Outcome {
  bool ok = false;
  std::string text;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome failed(const Error& error) { return {false, std::string(code_name(error.code)) + error.message}; }

Outcome finish(InferReader& reader, InferMessage kind) {
  if (!reader.complete()) return {false, "incomplete"};
  if (kind == InferMessage::kRequest) {
    const auto request = reader.take_request();
    return request ? Outcome{true, fuzz::joined(encode_infer_request(*request))} : failed(request.error());
  }
  const auto response = reader.take_response();
  return response ? Outcome{true, fuzz::joined(encode_infer_response(*response))} : failed(response.error());
}

Outcome read(InferMessage kind, std::string_view bytes, Manner manner) {
  InferReader reader(kind, arena(), limits());
  while (!bytes.empty()) {
    std::string_view chunk = bytes.substr(0, manner.piece == 0 ? bytes.size() : manner.piece);
    const MutableBytes tail = manner.place ? reader.tensor_tail() : MutableBytes{};
    if (tail.empty()) {
      if (auto status = reader.feed(as_bytes(chunk)); !status) return failed(status.error());
    } else {
      chunk = chunk.substr(0, tail.size());
      std::copy(chunk.begin(), chunk.end(), reinterpret_cast<char*>(tail.data()));
      if (auto status = reader.placed(chunk.size()); !status) return failed(status.error());
    }
    bytes.remove_prefix(chunk.size());
  }
  return finish(reader, kind);
}

// Of the error only its code is the same in pieces: how many bytes are left over depends on them.
bool agree(const Outcome& a, const Outcome& b) {
  if (a.ok || b.ok) return a == b;
  return a.text == b.text || (a.text.contains("after its end") && b.text.contains("after its end"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t how = input.byte();
  const std::size_t piece = 1 + input.byte();
  const InferMessage kind = (how & 1) == 0 ? InferMessage::kRequest : InferMessage::kResponse;
  std::string bytes;
  if ((how & 2) == 0) {
    const auto prefix = message_prefix(static_cast<std::uint32_t>(input.rest().size()));
    bytes.assign(prefix.data(), prefix.size());
  }
  bytes += input.rest();

  const Outcome whole = read(kind, bytes, {});
  SLUICE_CHECK(agree(whole, read(kind, bytes, {.piece = piece})), "pieces change the outcome");
  SLUICE_CHECK(agree(whole, read(kind, bytes, {.piece = piece, .place = true})), "placing changes the outcome");
  if (whole.ok) {
    const Outcome again = read(kind, whole.text, {});
    SLUICE_CHECK(whole == again, "what is written does not read back");
  }
  SLUICE_CHECK(arena().usage().blocks == 0, "a buffer was kept");
  return 0;
}
