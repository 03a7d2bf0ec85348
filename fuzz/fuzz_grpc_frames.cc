// gRPC's small parts: timeouts, messages in trailers, the unary messages. What was read can be written and read
// again.
//   [ what | bytes ]
#include "fuzz_input.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/messages.h"

namespace {

using namespace sluice;
using namespace sluice::grpc_wire;

void check_timeout(std::string_view text) {
  const auto timeout = parse_timeout(text);
  if (!timeout) return;
  SLUICE_CHECK(*timeout >= Duration(0), "a timeout is not negative");
  const auto again = parse_timeout(format_timeout(*timeout));
  SLUICE_CHECK(again && *again >= *timeout, "a timeout was cut");
}

void check_message(std::string_view text) {
  SLUICE_CHECK(decode_message(encode_message(text)) == text, "a message does not read back");
  const std::string decoded = decode_message(text);
  SLUICE_CHECK(decode_message(encode_message(decoded)) == decoded, "a decoded message does not read back");
}

void check_model_ref(std::string_view bytes) {
  const auto ref = parse_model_ref(bytes);
  if (!ref) return;
  const auto again = parse_model_ref(encode_model_ref(*ref));
  SLUICE_CHECK(again && again->name == ref->name && again->version == ref->version, "a name does not read back");
}

void check_metadata(std::string_view bytes) {
  const auto model = parse_model_metadata(bytes);
  if (!model) return;
  const std::string text = encode_model_metadata(*model);
  const auto again = parse_model_metadata(text);
  SLUICE_CHECK(again && encode_model_metadata(*again) == text, "a model's metadata does not read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.byte() % 6) {
    case 0: check_timeout(input.rest()); break;
    case 1: check_message(input.rest()); break;
    case 2: check_model_ref(input.rest()); break;
    case 3: check_metadata(input.rest()); break;
    case 4: (void)parse_health_request(input.rest()); break;
    default: (void)parse_bool(input.rest()); break;
  }
  return 0;
}
