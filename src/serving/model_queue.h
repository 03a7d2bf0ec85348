// The batcher's shell: requests of all loops -> Batcher -> BatchModel -> each request's rows to its sink.
//
//   submit (any loop) --lock--> Batcher --decisions--> BatchModel::submit --done--> split --> home loops
//
// Owner: ServedModel. A request is owned here from submit() until its terminal; its sink is called on the
// request's home loop only, exactly one terminal, in whatever way the request ends: success, model error,
// expired, cancelled, drained, shut down. A batch of one request that brings all its tensors is passed on
// without a copy; outputs are views of the batch's outputs.
//
// One lock is taken for each event (submit, cancel, a batch is over, time) and none is held while anything is
// called: the model, a sink, a loop. A finished batch is handed over by one post for each home loop it
// concerns, or directly when that is the thread it finished on. Timers live on one loop (`timer_loop`), which is
// told only when its next event moves earlier. An inline model runs on the home loop of its batch's first
// request. Loops outlive the queue.
//
// Statistics: batches and failed requests are recorded here; a success by whoever writes the answer out, who
// alone knows how long that took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/function.h"
#include "engine/batch_model.h"
#include "engine/response_sink.h"
#include "io/loop.h"
#include "model/infer.h"
#include "serving/batcher.h"
#include "serving/rows/reshape.h"
#include "stats/model_stats.h"

namespace sluice::serving {

// One request, ready to run: inputs in the model's order and checked against its signature.
struct PreparedRequest {
  engine::BatchItem item;
  std::uint64_t shape_key = 0;         // a hash; requests that meet by an accident of it are told apart
  std::vector<std::uint32_t> outputs;  // indices of the model's outputs, in the order asked for; empty = all
  std::string id;
  Time deadline = kNever;              // of the queue
  std::uint32_t priority = 0;
  RequestTimes times;                  // received is set; queued too, or it is read from the clock
};

class ModelQueue {
 public:
  struct Options {
    std::string model_name, model_version;
    BatcherOptions batcher;
    std::vector<std::string> output_names;
    std::vector<Reshape> output_reshapes;  // by output: from the model's shape; empty = none
    bool batched = false;  // the model has a batch dimension
  };
  ModelQueue(Options options, std::shared_ptr<engine::BatchModel> model, std::shared_ptr<ModelStats> stats,
             io::Loop& timer_loop);
  // Waiting requests get kUnavailable; batches in flight finish into their sinks.
  ~ModelQueue();

  // On `home`. The sink is always called later or during this call, with exactly one terminal. Returns a
  // ticket for cancel(); 0 when the request is over already.
  std::uint64_t submit(PreparedRequest request, io::Loop& home, std::unique_ptr<engine::ResponseSink> sink);
  // On the request's home loop. Its terminal is kCancelled when it was still waiting; a request that runs
  // finishes and its result is dropped by the sink. Unknown tickets are ignored.
  void cancel(std::uint64_t ticket);
  // `drained` runs on timer_loop when the last request is over. New requests get kUnavailable.
  void drain(Function<void()> drained);

  std::size_t waiting() const;
  std::size_t in_flight() const;  // taken from the queue, terminal not yet given

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::serving
