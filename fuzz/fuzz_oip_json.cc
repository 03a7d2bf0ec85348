// The protocol in JSON: any body is read or refused, with and without padding alike; what was read can be written
// and read again.
//   [ what | length of the binary part, 2 B | JSON | binary part ]
#include <cstring>

#include "fuzz_input.h"
#include "wire/oip/json.h"

namespace {

using namespace sluice;
using namespace sluice::oip;

Arena& arena() {
  static Arena arena{Arena::Options{.name = "fuzz", .max_bytes = 16 << 20}};
  return arena;
}

RequestLimits limits() {
  RequestLimits limits;
  limits.max_tensor_bytes = 64 * 1024;
  limits.max_inputs = 8;
  limits.max_outputs = 8;
  limits.max_parameters = 8;
  return limits;
}

Tensor binary_tensor(std::string_view bytes) {
  Tensor tensor{.datatype = DataType::kUint8, .shape = {static_cast<std::int64_t>(bytes.size())}};
  auto buffer = arena().allocate(bytes.size());
  SLUICE_CHECK(buffer, "the arena is large enough");
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  tensor.owner = std::move(*buffer);
  tensor.data = std::as_const(tensor.owner).bytes();
  return tensor;
}

JsonBody body_of(std::string_view text, std::size_t json_length) {
  return {.json = text.substr(0, json_length), .binary = binary_tensor(text.substr(json_length))};
}

Result<InferRequest> read_request(const JsonBody& body, const RequestLimits& limits) {
  return parse_infer_request(body, arena(), limits);
}
Result<InferResponse> read_response(const JsonBody& body, const RequestLimits& limits) {
  return parse_infer_response(body, arena(), limits);
}
EncodedJson write(const InferRequest& request) { return encode_infer_request(request, true); }
EncodedJson write(const InferResponse& response) {
  InferRequest request;
  request.binary_output_default = true;
  return encode_infer_response(response, request);
}
// JSON all through: NaN and bytes that are not text have none, so this need not read back.
void write_as_text(const InferRequest& request) { encode_infer_request(request, false); }
void write_as_text(const InferResponse& response) { encode_infer_response(response, {}); }

template <class Read>
void check_round_trip(Read read, const JsonBody& body) {
  const auto first = read(body, limits());
  std::string padded(body.json);
  padded.append(kJsonPadding, '"');
  JsonBody same{.json = std::string_view(padded).substr(0, body.json.size()), .binary = body.binary};
  same.readable_past_json = kJsonPadding;
  const auto other = read(same, limits());
  SLUICE_CHECK(first.has_value() == other.has_value(), "padding changes the outcome");
  if (!first) {
    SLUICE_CHECK(first.error() == other.error(), "padding changes the error");
    return;
  }
  write_as_text(*first);
  const EncodedJson encoded = write(*first);
  const std::string text = fuzz::joined(encoded.payload);
  // The default limits: binary_data_size is one parameter more than there may have been.
  const auto again = read(body_of(text, encoded.json_length.value_or(text.size())), RequestLimits{});
  SLUICE_CHECK(again, "what was written is refused");
  SLUICE_CHECK(fuzz::joined(write(*again).payload) == text, "what was written reads back as something else");
}

void check_metadata(std::string_view json) {
  const auto model = parse_model_metadata(json);
  if (!model) return;
  const std::string text = encode_model_metadata(*model);
  const auto again = parse_model_metadata(text);
  SLUICE_CHECK(again && encode_model_metadata(*again) == text, "a model's metadata does not read back");
}

// The JSON is a model's metadata, the binary part a raw request to it.
void check_raw(const JsonBody& body) {
  const auto model = parse_model_metadata(body.json);
  if (!model) return;
  const auto request = parse_raw_request(body.binary, *model, arena());
  SLUICE_CHECK(!request || check_tensor_data(request->inputs.at(0).tensor), "a raw request has a tensor that is none");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t what = input.byte();
  const std::size_t high = input.byte();
  const std::size_t binary = std::min(input.rest().size(), high << 8 | input.byte());
  const std::string_view text = input.rest();
  {
    const JsonBody body = body_of(text, text.size() - std::min(text.size(), binary));
    switch (what % 5) {
      case 0: check_round_trip(read_request, body); break;
      case 1: check_round_trip(read_response, body); break;
      case 2: check_metadata(body.json); break;
      case 3: check_raw(body); break;
      default: SLUICE_CHECK(parse_error(encode_error(parse_error(text))).size() <= 3 * text.size() + 1, "error text");
    }
  }
  SLUICE_CHECK(arena().usage().blocks == 0, "a buffer was kept");
  return 0;
}
