#include "net/preface.h"

#include <algorithm>

namespace sluice::net {

std::optional<Protocol> PrefaceDetector::feed(Bytes bytes) {
  before_ = matched_;
  const std::string_view text = as_text(bytes);
  const std::size_t n = std::min(text.size(), kHttp2Preface.size() - matched_);
  if (text.substr(0, n) != kHttp2Preface.substr(matched_, n)) return Protocol::kHttp1;
  matched_ += n;
  if (matched_ == kHttp2Preface.size()) return Protocol::kHttp2;
  return std::nullopt;
}

}  // namespace sluice::net
