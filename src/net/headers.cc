#include "net/http.h"

namespace sluice::net {

void Headers::add(std::string_view name, std::string_view value) {
  const auto begin = static_cast<std::uint32_t>(text_.size());
  const auto name_size = static_cast<std::uint32_t>(name.size());
  text_.append(name);
  text_.append(value);
  fields_.push_back({begin, name_size, begin + name_size, static_cast<std::uint32_t>(value.size())});
}

void Headers::clear() {
  text_.clear();
  fields_.clear();
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name_size != name.size()) continue;
    if (std::string_view(text_).substr(field.name_begin, field.name_size) != name) continue;
    return std::string_view(text_).substr(field.value_begin, field.value_size);
  }
  return std::nullopt;
}

std::pair<std::string_view, std::string_view> Headers::at(std::size_t index) const {
  const Field& field = fields_.at(index);
  const std::string_view text = text_;
  return {text.substr(field.name_begin, field.name_size), text.substr(field.value_begin, field.value_size)};
}

std::string_view method_name(Method method) {
  switch (method) {
    case Method::kGet: return "GET";
    case Method::kHead: return "HEAD";
    case Method::kPost: return "POST";
    case Method::kPut: return "PUT";
    case Method::kDelete: return "DELETE";
    case Method::kPatch: return "PATCH";
    case Method::kOptions: return "OPTIONS";
    case Method::kOther: break;
  }
  return "OTHER";
}

}  // namespace sluice::net
