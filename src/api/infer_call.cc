#include "api/infer_call.h"

#include <algorithm>
#include <utility>

namespace sluice::api {

class InferSink final : public engine::ResponseSink {
 public:
  explicit InferSink(InferHandler& handler) : handler_(&handler) {}
  ~InferSink() override {
    if (handler_) handler_->sink_ = nullptr;
  }
  void on_response(InferResponse response) override {
    if (handler_) handler_->response_ = std::move(response);
  }
  void on_terminal(Status status, const RequestTimes& times) override {
    if (InferHandler* handler = std::exchange(handler_, nullptr)) {
      handler->sink_ = nullptr;
      handler->finish(std::move(status), times);
    }
  }
  void detach() { handler_ = nullptr; }

 private:
  InferHandler* handler_;
};

InferHandler::~InferHandler() {
  if (sink_) sink_->detach();
}

void InferHandler::on_abort(const Error&) {
  if (!sink_) return;
  sink_->detach();
  sink_ = nullptr;
  model_->queue().cancel(ticket_);
}

void InferHandler::start(InferRequest request, std::string_view model, std::string_view version, Time deadline) {
  auto found = state_.models.find(model, version);
  if (!found) return send_error(found.error());
  model_ = std::move(*found);

  const Time received = exchange_.head().received;
  const Time now = exchange_.loop().now();
  auto prepared = model_->prepare(std::move(request), received, now);
  if (!prepared) {
    model_->stats()->record_failure(FailureReason::kOther, now - received);
    return send_error(prepared.error());
  }
  prepared->deadline = std::min(prepared->deadline, deadline);

  auto sink = std::make_unique<InferSink>(*this);
  sink_ = sink.get();
  // A cheap model answers inside this call, and the handler may be gone after it: nothing is touched then.
  const std::uint64_t ticket = model_->queue().submit(std::move(*prepared), exchange_.loop(), std::move(sink));
  if (ticket != 0) ticket_ = ticket;
}

void InferHandler::finish(Status status, RequestTimes times) {
  if (!status) return send_error(status.error());
  if (!response_) return send_error({Code::kInternal, "the model ended without a response"});
  // Nothing of this object is touched after the answer; the statistics include the encoding of it.
  const std::shared_ptr<serving::ServedModel> model = std::move(model_);
  io::Loop& loop = exchange_.loop();
  send_response(std::move(*response_));
  times.encoded = loop.now();
  model->stats()->record_success(times, loop.wall_ms());
}

}  // namespace sluice::api
