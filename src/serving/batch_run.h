// A batch on its way: the requests it took, what the model gets of them, and each one's part of the outputs.
// Part of ModelQueue. Not thread-safe; once the result is checked, different requests may be answered on
// different threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/batch_model.h"
#include "engine/response_sink.h"
#include "io/loop.h"
#include "serving/model_queue.h"

namespace sluice::serving {

struct QueueRequest {
  PreparedRequest prepared;
  io::Loop* home = nullptr;
  std::unique_ptr<engine::ResponseSink> sink;
  std::uint64_t ticket = 0;
  std::uint32_t place = 0;  // in its batch
  bool* over = nullptr;     // on the home loop: set when the request ends while submit() is still running
};

struct BatchRun {
  std::vector<std::unique_ptr<QueueRequest>> requests;
  std::uint32_t instance = 0;
  std::int64_t rows = 0;
  CloseReason reason = CloseReason::kInstanceFree;
  Time taken;
  Result<engine::BatchOutput> result;
  std::vector<std::vector<std::size_t>> boundaries;  // by output; only for a batch of several requests

  // Takes out the requests whose shapes are not those of the first: equal shape keys by accident.
  std::vector<std::unique_ptr<QueueRequest>> remove_strangers();
  // Moves the requests' inputs out.
  engine::Batch assemble(std::size_t output_count);
  // Checks the outputs and finds every request's rows; what is wrong becomes the result (kInternal). Before
  // any request of the batch leaves it.
  void check_result(const ModelQueue::Options& options);
  // Of a checked, good result. Consumes the request's id, and the outputs when the batch has no other request.
  InferResponse response_of(QueueRequest& request, const ModelQueue::Options& options);

 private:
  bool wanted(std::size_t output) const;
  Status check_output(std::size_t output, const ModelQueue::Options& options);
};

// Requests by ticket: (generation << 32 | slot), so that an old ticket never finds a newer request.
class RequestTable {
 public:
  std::uint64_t add(std::unique_ptr<QueueRequest> request);
  std::unique_ptr<QueueRequest> take(std::uint64_t ticket);  // it is there
  std::vector<std::unique_ptr<QueueRequest>> take_all();

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  struct Slot {
    std::unique_ptr<QueueRequest> request;
    std::uint32_t generation = 1;
    std::uint32_t next_free = kEnd;
  };
  std::unique_ptr<QueueRequest> take_slot(std::uint32_t slot);

  std::vector<Slot> slots_;
  std::uint32_t free_ = kEnd;
};

}  // namespace sluice::serving
