// One inference, whatever protocol it came by: from a parsed request to the answer or the error.
//
//   handler (owned by its exchange) <-----> InferSink (owned by the model's queue)
//
// Either may end first: a client that leaves takes the handler with it, and the sink then drops what comes;
// a terminal ends the sink, and the handler has answered by then. Both live on the exchange's loop.
#pragma once

#include <memory>
#include <optional>

#include "api/oip_service.h"
#include "engine/response_sink.h"

namespace sluice::api {

class InferSink;

class InferHandler : public net::RequestHandler {
 public:
  InferHandler(ServerState& state, net::Exchange& exchange) : state_(state), exchange_(exchange) {}
  ~InferHandler() override;

  void on_abort(const Error& reason) final;

 protected:
  // Finds the model, checks the request against it and queues it. An answer or an error follows, perhaps
  // before this returns. `deadline` is the client's; it bounds the time in the queue.
  void start(InferRequest request, std::string_view model, std::string_view version, Time deadline);

  virtual void send_response(InferResponse response) = 0;
  virtual void send_error(const Error& error) = 0;

  ServerState& state_;
  net::Exchange& exchange_;

 private:
  friend class InferSink;
  void finish(Status status, RequestTimes times);

  std::shared_ptr<serving::ServedModel> model_;
  InferSink* sink_ = nullptr;  // while the request is in the queue or runs
  std::uint64_t ticket_ = 0;
  std::optional<InferResponse> response_;
};

}  // namespace sluice::api
