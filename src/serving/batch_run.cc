#include "serving/batch_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "serving/rows/split.h"

namespace sluice::serving {
namespace {

// Whether all dimensions but the first are equal.
bool batch_together(const engine::BatchItem& a, const engine::BatchItem& b) {
  return std::ranges::equal(a.inputs, b.inputs, [](const Tensor& x, const Tensor& y) {
    return x.datatype == y.datatype && x.shape.size() == y.shape.size() &&
           (x.shape.empty() || std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1));
  });
}

}  // namespace

std::vector<std::unique_ptr<QueueRequest>> BatchRun::remove_strangers() {
  std::vector<std::unique_ptr<QueueRequest>> strangers;
  for (std::size_t i = 1; i < requests.size();) {
    if (batch_together(requests[0]->prepared.item, requests[i]->prepared.item)) {
      ++i;
      continue;
    }
    rows -= requests[i]->prepared.item.rows;
    strangers.push_back(std::move(requests[i]));
    requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i]->place = static_cast<std::uint32_t>(i);
  return strangers;
}

engine::Batch BatchRun::assemble(std::size_t output_count) {
  engine::Batch batch;
  batch.rows = rows;
  batch.items.reserve(requests.size());
  bool all = false;
  for (const auto& request : requests) {
    batch.items.push_back(std::move(request->prepared.item));
    all = all || request->prepared.outputs.empty();
  }
  if (all) return batch;
  batch.wanted.resize(output_count);
  for (const auto& request : requests) {
    for (const std::uint32_t output : request->prepared.outputs) batch.wanted[output] = true;
  }
  return batch;
}

bool BatchRun::wanted(std::size_t output) const {
  return std::ranges::any_of(requests, [output](const auto& request) {
    const auto& asked = request->prepared.outputs;
    return asked.empty() || std::ranges::find(asked, output) != asked.end();
  });
}

void BatchRun::check_result(const ModelQueue::Options& options) {
  if (!result) return;
  if (result->outputs.size() != options.output_names.size()) {
    result = fail(Code::kInternal, fmt::format("the model gave {} outputs: expected {}", result->outputs.size(),
                                               options.output_names.size()));
    return;
  }
  if (requests.size() > 1) boundaries.resize(result->outputs.size());
  for (std::size_t i = 0; i < result->outputs.size(); ++i) {
    if (Status checked = check_output(i, options); !checked) {
      result = fail(Code::kInternal, fmt::format("output '{}': {}", options.output_names[i], checked.error().message));
      return;
    }
  }
}

Status BatchRun::check_output(std::size_t output, const ModelQueue::Options& options) {
  if (!wanted(output)) return {};
  const Tensor& tensor = result->outputs[output];
  if (tensor.datatype == DataType::kInvalid) return fail(Code::kInternal, "the model did not give it");
  if (requests.size() > 1) {
    std::vector<std::int64_t> rows_per_request;
    rows_per_request.reserve(requests.size());
    for (const auto& request : requests) rows_per_request.push_back(request->prepared.item.rows);
    auto found = row_boundaries(tensor, rows_per_request);
    if (!found) return fail(std::move(found.error()));
    boundaries[output] = std::move(*found);
  } else if (options.batched && (tensor.shape.empty() || tensor.shape[0] != rows)) {
    return fail(Code::kInternal, fmt::format("the model gave shape {} for a batch of {} rows",
                                             shape_to_string(tensor.shape), rows));
  }
  return {};
}

InferResponse BatchRun::response_of(QueueRequest& request, const ModelQueue::Options& options) {
  InferResponse response{.model_name = options.model_name, .model_version = options.model_version,
                         .id = std::move(request.prepared.id)};
  const auto& asked = request.prepared.outputs;
  const std::size_t count = asked.empty() ? result->outputs.size() : asked.size();
  response.outputs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t output = asked.empty() ? i : asked[i];
    Tensor& whole = result->outputs[output];
    OutputTensor& part = response.outputs.emplace_back(options.output_names[output]);
    if (boundaries.empty()) {
      part.tensor = std::move(whole);
    } else {
      const auto& at = boundaries[output];
      part.tensor = rows_of(whole, request.prepared.item.rows, at[request.place], at[request.place + 1]);
    }
    if (!options.output_reshapes.empty()) {
      apply_reshape(options.output_reshapes[output], options.batched, part.tensor.shape);
    }
  }
  return response;
}

std::uint64_t RequestTable::add(std::unique_ptr<QueueRequest> request) {
  std::uint32_t at = free_;
  if (at == kEnd) {
    at = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    free_ = slots_[at].next_free;
  }
  Slot& slot = slots_[at];
  const std::uint64_t ticket = std::uint64_t{slot.generation} << 32 | at;
  request->ticket = ticket;
  slot.request = std::move(request);
  return ticket;
}

std::unique_ptr<QueueRequest> RequestTable::take(std::uint64_t ticket) {
  const auto at = static_cast<std::uint32_t>(ticket);
  SLUICE_CHECK(at < slots_.size() && slots_[at].request && slots_[at].generation == ticket >> 32,
               "a ticket that was taken is of a request that waits");
  return take_slot(at);
}

std::unique_ptr<QueueRequest> RequestTable::take_slot(std::uint32_t at) {
  Slot& slot = slots_[at];
  slot.generation = std::max(slot.generation + 1, 1u);  // 0 would make a ticket of 0
  slot.next_free = std::exchange(free_, at);
  return std::move(slot.request);
}

std::vector<std::unique_ptr<QueueRequest>> RequestTable::take_all() {
  std::vector<std::unique_ptr<QueueRequest>> all;
  for (std::uint32_t at = 0; at < slots_.size(); ++at) {
    if (slots_[at].request) all.push_back(take_slot(at));
  }
  return all;
}

}  // namespace sluice::serving
