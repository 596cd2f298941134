#include "launcher/schedulers/yaml_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {

std::string yaml_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      throw Error(ErrorKind::usage,
                  "'" + printable(text) + "' is not UTF-8, and a manifest holds nothing else",
                  "pass such bytes in a file of the image");
    const auto byte = static_cast<unsigned char>(text.front());
    char escape[16] = {};
    if (length > 1) {
      std::uint32_t point = byte & (0x7fU >> length);
      for (std::size_t i = 1; i < length; ++i)
        point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3fU);
      std::snprintf(escape, sizeof escape, "\\U%08x", point);
      quoted.append(escape);
    } else if (byte < 0x20 || byte == 0x7f) {
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      quoted.append(escape);
    } else {
      if (byte == '"' || byte == '\\') quoted.push_back('\\');
      quoted.push_back(text.front());
    }
    text.remove_prefix(length);
  }
  return quoted + "\"";
}

std::string yaml_comment(std::string_view text) {
  std::string line = printable(text, 4000);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x7f; }, '?');
  return line;
}

}  // namespace fleetrun::launcher
