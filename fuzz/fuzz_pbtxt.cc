// config.pbtxt: any bytes either are refused, or give a configuration whose text form reads back to itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/config/pbtxt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = sluice::parse_model_config({reinterpret_cast<const char*>(data), size});
  if (!config) {
    SLUICE_CHECK(!config.error().message.empty(), "a refusal says why");
    return 0;
  }
  const std::string text = sluice::format_model_config(*config);
  const auto again = sluice::parse_model_config(text);
  SLUICE_CHECK(again, again.error().message);
  SLUICE_CHECK(sluice::format_model_config(*again) == text, "text, read and written, is the same text");
  SLUICE_CHECK(sluice::format_model_config_json(*again) == sluice::format_model_config_json(*config), "and so is JSON");
  return 0;
}
