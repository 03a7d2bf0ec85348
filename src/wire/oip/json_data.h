// The `data` of a tensor in JSON -> its raw bytes. Private to wire/oip.
#pragma once

#include "base/error.h"
#include "tensor/tensor.h"
#include "wire/oip/json_document.h"

namespace sluice::oip {

struct JsonDataRules {
  std::size_t max_bytes = 0;    // of the tensor
  std::size_t json_bytes = 0;   // of the document: no more elements than this can be in it
  bool null_is_nan = false;     // for floats: what a server writes for NaN and infinities
};

// Flat or nested to any depth, row-major. tensor.datatype and shape are set; data and owner are filled in, from
// a buffer of the arena. kInvalidArgument: another count than the shape's, an element of another type or out of
// range (floats: not finite), FP16 and BF16. Nothing is allocated for a count that the document cannot hold.
// BOOL takes true and false, 1 and 0. Walks without recursion.
Status read_json_data(Element data, const JsonDataRules& rules, Arena& arena, Tensor& tensor);

}  // namespace sluice::oip
