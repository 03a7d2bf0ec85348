#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "front.h"
#include "tensors.h"

namespace sluice::sim {
namespace {

class DirectFront final : public RequestFront {
 public:
  explicit DirectFront(Stage& stage) : stage_(stage) {}

  void send(RequestRecord& record) override {
    record.sent = stage_.world.now();
    home_of(record).post([this, &record] { submit(record); });
  }
  void cancel(RequestRecord& record) override {
    home_of(record).post([this, &record] {
      if (record.answers > 0) return;
      record.given_up = true;
      record.given_up_at = stage_.world.now();
      stage_.model->queue().cancel(tickets_[record.plan.id]);
    });
  }
  void drain(Function<void()> drained) override { stage_.model->queue().drain(std::move(drained)); }
  void lose_client(std::uint32_t) override {}
  void close() override {}

 private:
  class Sink;

  io::Loop& home_of(const RequestRecord& record) const {
    return *stage_.server_loops[record.plan.id % stage_.server_loops.size()];
  }
  void submit(RequestRecord& record);

  Stage& stage_;
  std::map<std::uint64_t, std::uint64_t> tickets_;
};

// Holds serving to the contract of engine/response_sink.h.
class DirectFront::Sink final : public engine::ResponseSink {
 public:
  Sink(Stage& stage, RequestRecord& record, const io::Loop& home) : stage_(stage), record_(record), home_(home) {}
  ~Sink() override {
    if (!ended_) report("its sink was destroyed without a terminal");
  }

  void on_response(InferResponse response) override {
    check_thread();
    if (ended_ || answered_) report("a response after its end, or a second one");
    answered_ = true;
    if (const auto wrong = wrong_answer(stage_.scenario.model, record_.plan, response)) {
      stage_.ledger.findings.add("right rows", fmt::format("request {}: {}", record_.plan.id, *wrong));
    }
  }

  void on_terminal(Status status, const RequestTimes&) override {
    check_thread();
    if (std::exchange(ended_, true)) report("a second terminal");
    if (status.has_value() != answered_) report("success without a response, or an error with one");
    stage_.ledger.answer(record_.plan.id, status, stage_.world.now());
  }

 private:
  void check_thread() {
    if (!home_.on_loop_thread()) report("its sink is called outside of its home loop");
  }
  void report(std::string_view text) {
    stage_.ledger.findings.add("sink", fmt::format("request {}: {}", record_.plan.id, text));
  }

  Stage& stage_;
  RequestRecord& record_;
  const io::Loop& home_;
  bool answered_ = false, ended_ = false;
};

void DirectFront::submit(RequestRecord& record) {
  const Time now = stage_.world.now();
  if (record.plan.unknown_model) {
    return stage_.ledger.answer(record.plan.id, fail(Code::kNotFound, "no such model"), now);
  }
  auto request = make_request(stage_.scenario.model, record.plan, stage_.client_arena);
  auto prepared = stage_.model->prepare(std::move(request), now, now);
  if (!prepared) {
    const Status status = fail(prepared.error());
    return stage_.ledger.answer(record.plan.id, status, now);
  }
  if (record.plan.timeout) prepared->deadline = std::min(prepared->deadline, now + *record.plan.timeout);
  record.accepted = now;
  record.queue_deadline = prepared->deadline;
  record.queue_was_full = stage_.model->queue().waiting() >= stage_.scenario.model.max_queue_size;
  io::Loop& home = home_of(record);
  tickets_[record.plan.id] =
      stage_.model->queue().submit(std::move(*prepared), home, std::make_unique<Sink>(stage_, record, home));
}

}  // namespace

std::unique_ptr<RequestFront> make_direct_front(Stage& stage) { return std::make_unique<DirectFront>(stage); }

}  // namespace sluice::sim
