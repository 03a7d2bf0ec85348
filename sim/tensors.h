// The simulated model's arithmetic, and how requests and answers are told apart. Two inputs, two outputs:
//
//   A INT64 [rows, width]   B INT64 [rows, 1]      B carries (request, row), A is a hash of (request, row, column)
//   Y = 3 A + B             S = B xor (sum of A's row)
//
// Every output value depends on its own row alone, and on which request and row that is: an answer made of
// another's rows, or of rows in another order, never passes. Without a batch dimension: A [width], B [1].
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "model/infer.h"
#include "scenario.h"
#include "tensor/buffer.h"

namespace sluice::sim {

inline constexpr std::string_view kModelName = "sim";
inline constexpr std::string_view kUnknownModelName = "nobody";

InferRequest make_request(const ModelPlan& model, const RequestPlan& plan, Arena& arena);

// Which request a row of B belongs to.
std::uint64_t request_of(std::int64_t b);
// Is this exactly what the request sent? Names the first difference.
std::optional<std::string> wrong_input(const RequestPlan& plan, const Tensor& a, const Tensor& b);
// Is this exactly what the request must get? Names the first difference.
std::optional<std::string> wrong_answer(const ModelPlan& model, const RequestPlan& plan, const InferResponse& response);

// One row's Y (width values) and S (one).
void compute_row(const std::int64_t* a, std::int64_t width, std::int64_t b, std::int64_t* y, std::int64_t* s);

}  // namespace sluice::sim
