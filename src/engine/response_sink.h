// Where a request's answers go: zero to n responses, then exactly one terminal. Both engine seams and
// serving keep this contract; the simulator checks it.
#pragma once

#include "base/error.h"
#include "stats/model_stats.h"
#include "model/infer.h"

namespace sluice::engine {

class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void on_response(InferResponse response) = 0;
  // The last call. `times` holds the instants reached so far; whoever writes the response to the wire fills
  // `encoded`.
  virtual void on_terminal(Status status, const RequestTimes& times) = 0;
};

}  // namespace sluice::engine
