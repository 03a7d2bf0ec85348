#include "serving/model_queue.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "io/timer_queue.h"
#include "serving/batch_run.h"

namespace sluice::serving {
namespace {

void call_on(io::Loop& loop, Function<void()> task) {
  if (loop.on_loop_thread()) {
    task();
  } else {
    loop.post(std::move(task));
  }
}

}  // namespace

// Everything that follows an event happens in a Turn: what the batcher decided is taken under the lock and
// carried out after it. A batch that is over before BatchModel::submit() returns is finished by the turn that
// submitted it, in a loop: an inline model never makes the stack deeper.
class ModelQueue::State : public std::enable_shared_from_this<ModelQueue::State> {
 public:
  State(Options options, std::shared_ptr<engine::BatchModel> model, std::shared_ptr<ModelStats> stats,
        io::Loop& timer_loop)
      : options_(std::move(options)), model_(std::move(model)), stats_(std::move(stats)), loop_(timer_loop),
        inline_(model_->runs_inline()), batcher_(options_.batcher) {}

  std::uint64_t submit(PreparedRequest prepared, io::Loop& home, std::unique_ptr<engine::ResponseSink> sink);
  void cancel(std::uint64_t ticket);
  void drain(Function<void()> drained);
  void close();
  std::size_t waiting() const;
  std::size_t live() const { return live_.load(); }

 private:
  struct Run;
  class Completion;
  class RunList;
  struct Turn;

  void collect(Time now, Turn& turn);  // under the lock
  void carry_out(Turn& turn);
  void begin(std::shared_ptr<Run> run, Turn& turn);
  void begin_here(std::shared_ptr<Run> run, Turn& turn);
  void finish(std::shared_ptr<Run> run, Turn& turn);
  void hand_over(const std::shared_ptr<Run>& run);
  void answer(Run& run, std::size_t first, std::size_t last);
  void end(QueueRequest& request, Status status);
  void fail_request(QueueRequest& request, Error error, FailureReason reason);
  void fail_at_home(std::unique_ptr<QueueRequest> request, Error error, FailureReason reason);
  void fail_expired(std::vector<std::unique_ptr<QueueRequest>> expired);
  void tell_drained();
  void on_time();
  void set_timer();

  const Options options_;
  const std::shared_ptr<engine::BatchModel> model_;
  const std::shared_ptr<ModelStats> stats_;
  io::Loop& loop_;
  const bool inline_;
  std::atomic<std::size_t> live_{0};  // submitted, terminal not yet given
  std::atomic<bool> draining_{false};

  mutable std::mutex mutex_;
  Batcher batcher_;              // guarded by mutex_, as all below
  RequestTable requests_;        // those that wait
  BatcherDecisions decisions_;   // empty outside an event
  Time timer_at_ = kNever;       // what the timer is, or is being, armed for
  bool closed_ = false;
  std::vector<Function<void()>> drained_;

  std::unique_ptr<io::Timer> timer_;  // on loop_ only
};

struct ModelQueue::State::Run : BatchRun {
  enum class Phase : std::uint8_t { kSubmitting, kReturned, kDone };
  std::shared_ptr<State> queue;
  // Who comes second, the return of submit() or the completion, finishes the batch.
  std::atomic<Phase> phase{Phase::kSubmitting};
  std::shared_ptr<Run> next;  // in a RunList
};

class ModelQueue::State::RunList {
 public:
  bool empty() const { return first_ == nullptr; }
  void push(std::shared_ptr<Run> run) {
    Run* const last = run.get();
    (first_ ? last_->next : first_) = std::move(run);
    last_ = last;
  }
  std::shared_ptr<Run> pop() {
    std::shared_ptr<Run> run = std::move(first_);
    first_ = std::move(run->next);
    return run;
  }

 private:
  std::shared_ptr<Run> first_;
  Run* last_ = nullptr;
};

struct ModelQueue::State::Turn {
  RunList ready;     // to be given to the model
  RunList finished;  // to be handed to their requests
  std::vector<std::unique_ptr<QueueRequest>> expired;
  bool set_timer = false;
};

// What the model calls when a batch is over. If the model loses it, the batch fails rather than hangs.
class ModelQueue::State::Completion {
 public:
  explicit Completion(std::shared_ptr<Run> run) noexcept : run_(std::move(run)) {}
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&&) = delete;
  ~Completion() {
    if (run_) (*this)(fail(Code::kInternal, "the model dropped the batch without a result"));
  }

  void operator()(Result<engine::BatchOutput> result) {
    const std::shared_ptr<Run> run = std::move(run_);
    run->result = std::move(result);
    if (run->phase.exchange(Run::Phase::kDone, std::memory_order_acq_rel) == Run::Phase::kSubmitting) return;
    Turn turn;
    run->queue->finish(run, turn);
    run->queue->carry_out(turn);
  }

 private:
  std::shared_ptr<Run> run_;
};

std::uint64_t ModelQueue::State::submit(PreparedRequest prepared, io::Loop& home,
                                        std::unique_ptr<engine::ResponseSink> sink) {
  if (prepared.times.queued == Time{}) prepared.times.queued = loop_.now();
  const Time now = prepared.times.queued;
  QueuedRequest queued{.rows = prepared.item.rows, .shape_key = prepared.shape_key, .deadline = prepared.deadline,
                       .priority = prepared.priority};
  bool over = false;
  auto request = std::make_unique<QueueRequest>(std::move(prepared), &home, std::move(sink));
  request->over = &over;
  QueueRequest* const submitted = request.get();
  live_.fetch_add(1);
  Turn turn;
  Status admitted;
  {
    const std::lock_guard lock(mutex_);
    queued.id = requests_.add(std::move(request));
    admitted = batcher_.enqueue(queued, now, decisions_);
    if (!admitted) request = requests_.take(queued.id);
    collect(now, turn);
  }
  if (!admitted) {
    const bool wrong = admitted.error().code == Code::kInvalidArgument;
    fail_request(*request, admitted.error(), wrong ? FailureReason::kOther : FailureReason::kRejected);
  }
  carry_out(turn);
  if (over) return 0;
  submitted->over = nullptr;  // it ends on this loop, so it is still there
  return queued.id;
}

void ModelQueue::State::cancel(std::uint64_t ticket) {
  const Time now = loop_.now();
  Turn turn;
  std::unique_ptr<QueueRequest> request;
  {
    const std::lock_guard lock(mutex_);
    if (batcher_.cancel(ticket, now, decisions_)) request = requests_.take(ticket);
    collect(now, turn);
  }
  if (request) {
    fail_request(*request, Error{Code::kCancelled, "the request was cancelled"}, FailureReason::kCanceled);
  }
  carry_out(turn);
}

void ModelQueue::State::drain(Function<void()> drained) {
  const Time now = loop_.now();
  Turn turn;
  {
    const std::lock_guard lock(mutex_);
    drained_.push_back(std::move(drained));
    draining_ = true;
    batcher_.drain(now, decisions_);
    collect(now, turn);
  }
  carry_out(turn);
  if (live_.load() == 0) tell_drained();
}

// The owner is gone: nothing more is taken, what waits is refused, what runs ends as ever.
void ModelQueue::State::close() {
  std::vector<std::unique_ptr<QueueRequest>> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting = requests_.take_all();
    stats_->set_pending(0);
  }
  for (auto& request : waiting) {
    fail_at_home(std::move(request), Error{Code::kUnavailable, "the model was unloaded"}, FailureReason::kOther);
  }
  call_on(loop_, [self = shared_from_this()] { self->timer_.reset(); });
}

std::size_t ModelQueue::State::waiting() const {
  const std::lock_guard lock(mutex_);
  return batcher_.waiting();
}

void ModelQueue::State::collect(Time now, Turn& turn) {
  for (const BatchDecision& batch : decisions_.batches) {
    auto run = std::make_shared<Run>();
    run->queue = shared_from_this();
    run->instance = batch.instance;
    run->rows = batch.rows;
    run->reason = batch.reason;
    run->taken = now;
    run->requests.reserve(batch.count);
    for (const RequestId id : decisions_.requests_of(batch)) run->requests.push_back(requests_.take(id));
    turn.ready.push(std::move(run));
  }
  for (const RequestId id : decisions_.expired) turn.expired.push_back(requests_.take(id));
  if (decisions_.next_event < timer_at_) {
    timer_at_ = decisions_.next_event;
    turn.set_timer = true;
  }
  stats_->set_pending(static_cast<std::int64_t>(batcher_.waiting()));
  decisions_.clear();
}

// Until nothing is left: what is carried out may add to the turn.
void ModelQueue::State::carry_out(Turn& turn) {
  for (;;) {
    if (std::exchange(turn.set_timer, false)) {
      call_on(loop_, [self = shared_from_this()] { self->set_timer(); });
    } else if (!turn.expired.empty()) {
      fail_expired(std::exchange(turn.expired, {}));
    } else if (!turn.finished.empty() && (inline_ || turn.ready.empty())) {
      // A model on its own threads gets its next batch before the answers of the last are handed over.
      hand_over(turn.finished.pop());
    } else if (!turn.ready.empty()) {
      begin(turn.ready.pop(), turn);
    } else {
      return;
    }
  }
}

void ModelQueue::State::fail_expired(std::vector<std::unique_ptr<QueueRequest>> expired) {
  for (auto& request : expired) {
    fail_at_home(std::move(request),
                 Error{Code::kDeadlineExceeded, "the request's deadline passed while it waited in the queue"},
                 FailureReason::kRejected);
  }
}

void ModelQueue::State::begin(std::shared_ptr<Run> run, Turn& turn) {
  io::Loop& home = *run->requests.front()->home;
  if (!inline_ || home.on_loop_thread()) return begin_here(std::move(run), turn);
  home.post([run = std::move(run)] {
    Turn own;
    run->queue->begin_here(run, own);
    run->queue->carry_out(own);
  });
}

void ModelQueue::State::begin_here(std::shared_ptr<Run> run, Turn& turn) {
  for (auto& stranger : run->remove_strangers()) {
    fail_at_home(std::move(stranger), Error{Code::kUnavailable, "the request met one of another shape: try again", 1},
                 FailureReason::kOther);
  }
  model_->submit(run->assemble(options_.output_names.size()), Completion(run));
  if (run->phase.exchange(Run::Phase::kReturned, std::memory_order_acq_rel) == Run::Phase::kDone) {
    finish(std::move(run), turn);
  }
}

void ModelQueue::State::finish(std::shared_ptr<Run> run, Turn& turn) {
  // A batch that ran right here ended a moment ago: a reading of the clock saved.
  const Time now = inline_ && run->result ? run->result->compute_end : loop_.now();
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      batcher_.on_instance_free(run->instance, now, decisions_);
      collect(now, turn);
    }
  }
  if (run->result) {
    const engine::BatchOutput& output = *run->result;
    stats_->record_batch(static_cast<std::uint64_t>(run->rows), run->reason, output.compute_start - run->taken,
                         output.compute_end - output.compute_start, now - output.compute_end);
  }
  turn.finished.push(std::move(run));
}

void ModelQueue::State::hand_over(const std::shared_ptr<Run>& run) {
  run->check_result(options_);
  auto& requests = run->requests;
  std::size_t first = 0;
  while (first < requests.size()) {
    io::Loop* const home = requests[first]->home;
    const auto of_home = [home](const auto& request) { return request->home == home; };
    const auto rest = std::find_if_not(requests.begin() + static_cast<std::ptrdiff_t>(first), requests.end(), of_home);
    const auto end = rest == requests.end() ? rest : std::stable_partition(rest, requests.end(), of_home);
    const auto last = static_cast<std::size_t>(end - requests.begin());
    if (home->on_loop_thread()) {
      answer(*run, first, last);
    } else {
      home->post([run, first, last] { run->queue->answer(*run, first, last); });
    }
    first = last;
  }
}

void ModelQueue::State::answer(Run& run, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const std::unique_ptr<QueueRequest> request = std::move(run.requests[i]);
    RequestTimes& times = request->prepared.times;
    times.taken = run.taken;
    if (!run.result) {
      fail_request(*request, run.result.error(), FailureReason::kBackend);
      continue;
    }
    times.compute_start = run.result->compute_start;
    times.compute_end = run.result->compute_end;
    request->sink->on_response(run.response_of(*request, options_));
    end(*request, {});
  }
}

void ModelQueue::State::fail_request(QueueRequest& request, Error error, FailureReason reason) {
  stats_->record_failure(reason, loop_.now() - request.prepared.times.received);
  end(request, fail(std::move(error)));
}

// The one place where a request ends. On its home loop.
void ModelQueue::State::end(QueueRequest& request, Status status) {
  if (request.over) *request.over = true;
  request.sink->on_terminal(std::move(status), request.prepared.times);
  if (live_.fetch_sub(1) == 1 && draining_.load()) tell_drained();
}

void ModelQueue::State::fail_at_home(std::unique_ptr<QueueRequest> request, Error error, FailureReason reason) {
  io::Loop& home = *request->home;
  call_on(home, [self = shared_from_this(), request = std::move(request), error = std::move(error), reason] {
    self->fail_request(*request, error, reason);
  });
}

void ModelQueue::State::tell_drained() {
  std::vector<Function<void()>> drained;
  {
    const std::lock_guard lock(mutex_);
    if (live_.load() == 0) drained.swap(drained_);
  }
  for (auto& call : drained) loop_.post(std::move(call));
}

void ModelQueue::State::on_time() {
  const Time now = loop_.now();
  Turn turn;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    timer_at_ = kNever;
    batcher_.on_time(now, decisions_);
    collect(now, turn);
  }
  carry_out(turn);
}

void ModelQueue::State::set_timer() {
  Time at;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    at = timer_at_;
  }
  if (!timer_) timer_ = std::make_unique<io::Timer>(loop_.timers(), [this] { on_time(); });
  timer_->arm(at);
}

ModelQueue::ModelQueue(Options options, std::shared_ptr<engine::BatchModel> model, std::shared_ptr<ModelStats> stats,
                       io::Loop& timer_loop)
    : state_(std::make_shared<State>(std::move(options), std::move(model), std::move(stats), timer_loop)) {}

ModelQueue::~ModelQueue() { state_->close(); }

std::uint64_t ModelQueue::submit(PreparedRequest request, io::Loop& home, std::unique_ptr<engine::ResponseSink> sink) {
  return state_->submit(std::move(request), home, std::move(sink));
}

void ModelQueue::cancel(std::uint64_t ticket) { state_->cancel(ticket); }
void ModelQueue::drain(Function<void()> drained) { state_->drain(std::move(drained)); }
std::size_t ModelQueue::waiting() const { return state_->waiting(); }

std::size_t ModelQueue::in_flight() const {
  const std::size_t waiting = state_->waiting();
  return std::max(state_->live(), waiting) - waiting;
}

}  // namespace sluice::serving
