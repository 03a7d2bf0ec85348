// Reads one gRPC-framed inference.ModelInferRequest as it arrives, in pieces of any size, and places each
// raw_input_contents entry straight into an aligned buffer: one copy of a tensor between socket and engine.
//
//   PREFIX(5) -> [ TAG -> LENGTH -> (META: bytes collected | TENSOR: bytes placed | SKIP) ]* -> done
//
// The metadata (all other fields, a few hundred bytes) is collected and parsed at the end. Field order is
// free; `contents` (typed data) beside raw contents is an error. Limits are checked before allocation.
// Also reads ModelInferResponse on the client's side: the same shape with other numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "model/infer.h"

namespace sluice::grpc_wire {

struct InferReaderLimits {
  std::size_t max_message_bytes = std::size_t{1} << 30;
  std::size_t max_metadata_bytes = std::size_t{16} << 20;  // typed contents travel there too
  RequestLimits request;
};

enum class InferMessage { kRequest, kResponse };

class InferReader {
 public:
  InferReader(InferMessage kind, Arena& arena, const InferReaderLimits& limits);
  ~InferReader();
  InferReader(InferReader&&) noexcept;

  // kUnimplemented for a compressed message, kResourceExhausted for a limit (named), kInvalidArgument for
  // what is not protobuf, or for bytes after the message. After an error the reader is dead: every further
  // call fails with kFailedPrecondition.
  Status feed(Bytes chunk);
  // Where the next bytes of a tensor belong, when the reader is inside one (empty otherwise): a caller that
  // can read straight from the socket fills a prefix and calls placed(n) instead of feed().
  MutableBytes tensor_tail();
  Status placed(std::size_t bytes);  // at most tensor_tail().size()

  // The whole message has arrived. A body that ends before is the caller's to refuse.
  bool complete() const;
  // Once, after complete(): the struct, checked as REST's is. kInvalidArgument names input, expected, given.
  Result<InferRequest> take_request();
  Result<InferResponse> take_response();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Framed messages. Tensors are uncopied in slices of their own, but for those of at most kInlineTensorBytes,
// which are cheaper to copy than to send as a part of their own. The message is below 4 GiB (checked): the
// caller bounds the outputs of a model.
inline constexpr std::size_t kInlineTensorBytes = 2048;
Payload encode_infer_request(const InferRequest& request);
Payload encode_infer_response(const InferResponse& response);

}  // namespace sluice::grpc_wire
