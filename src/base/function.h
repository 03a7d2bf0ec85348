// A callable that owns what it captures and is called at most as often as its owner says.
#pragma once

#include <functional>

namespace sluice {

template <class Signature>
using Function = std::move_only_function<Signature>;

}  // namespace sluice
