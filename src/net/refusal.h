// The answer that net itself gives when a limit, a time-out or the syntax ends a request: {"error": "..."} with
// the HTTP status, or for a gRPC request its status in a trailers-only response.
#pragma once

#include "base/error.h"
#include "net/http.h"
#include "tensor/tensor.h"

namespace sluice::net {

struct Refusal {
  ResponseHead head;
  Payload body;
  Trailers trailers;
};

Refusal make_refusal(const RequestHead& request, int status, const Error& error);

}  // namespace sluice::net
