// A parsed config.pbtxt and where each of its fields stands. Private to wire/config (protobuf).
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::config {

// One message of the text: its fields, their places, and the path that leads to it ("input.reshape").
class Node {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  Node(const google::protobuf::Message& message, const Tree* tree, std::string path)
      : message_(message), tree_(tree), path_(std::move(path)) {}

  // A nested message; `index` counts among repeated ones.
  Node child(std::string_view field, const google::protobuf::Message& message, int index = 0) const;
  // "config.pbtxt:3:5: input.dims"; without the numbers where the text does not say the field.
  std::string place(std::string_view field, int index = 0) const;
  std::unexpected<Error> refuse(Code code, std::string_view field, std::string_view reason, int index = 0) const;

  const google::protobuf::Message& message() const { return message_; }
  const std::string& path() const { return path_; }

 private:
  const google::protobuf::FieldDescriptor* descriptor(std::string_view field) const;
  std::string path_of(std::string_view field) const;

  const google::protobuf::Message& message_;
  const Tree* tree_;  // null where places are not known (values of maps)
  std::string path_;
};

// Fills `message`; kInvalidArgument with every error the parser found, each "config.pbtxt:LINE:COLUMN: ...".
Status parse_text(std::string_view text, google::protobuf::Message& message, Node::Tree& places);

}  // namespace sluice::config
