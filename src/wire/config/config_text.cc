#include "wire/config/config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <vector>

#include "base/check.h"

namespace sluice::config {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxErrors = 8;      // further ones follow from the first
constexpr int kMaxDepth = 32;              // of braces; the schema needs 7

// Protobuf counts lines and columns from 0; people and editors from 1.
std::string at(int line, int column) { return fmt::format("config.pbtxt:{}:{}", line + 1, column + 1); }

class ErrorList : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (errors_.size() < kMaxErrors) errors_.push_back(fmt::format("{}: {}", at(line, column), message));
  }
  std::string text() const { return fmt::format("{}", fmt::join(errors_, "; ")); }

 private:
  std::vector<std::string> errors_;
};

}  // namespace

const pb::FieldDescriptor* Node::descriptor(std::string_view field) const {
  const auto* found = message_.GetDescriptor()->FindFieldByName(std::string(field));
  SLUICE_CHECK(found, fmt::format("no field '{}' in {}", field, message_.GetDescriptor()->full_name()));
  return found;
}

std::string Node::path_of(std::string_view field) const {
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

Node Node::child(std::string_view field, const pb::Message& message, int index) const {
  const auto* of = descriptor(field);
  const Tree* tree = tree_ && !of->is_map() ? tree_->GetTreeForNested(of, of->is_repeated() ? index : -1) : nullptr;
  return {message, tree, path_of(field)};
}

std::string Node::place(std::string_view field, int index) const {
  const auto* of = descriptor(field);
  if (!tree_) return fmt::format("config.pbtxt: {}", path_of(field));
  auto where = tree_->GetLocation(of, of->is_repeated() ? index : -1);
  // Of a list in brackets only the first value's place is kept.
  if (where.line < 0 && of->is_repeated()) where = tree_->GetLocation(of, 0);
  if (where.line < 0) return fmt::format("config.pbtxt: {}", path_of(field));
  return fmt::format("{}: {}", at(where.line, where.column), path_of(field));
}

std::unexpected<Error> Node::refuse(Code code, std::string_view field, std::string_view reason, int index) const {
  return fail(code, fmt::format("{}: {}", place(field, index), reason));
}

Status parse_text(std::string_view text, pb::Message& message, Node::Tree& places) {
  if (text.size() > kMaxConfigBytes) {
    return fail(Code::kInvalidArgument,
                fmt::format("config.pbtxt has {} bytes, at most {} are read", text.size(), kMaxConfigBytes));
  }
  ErrorList errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&places);
  parser.SetRecursionLimit(kMaxDepth);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) return fail(Code::kInvalidArgument, errors.text());
  return {};
}

}  // namespace sluice::config
