#include "launcher/log_writer/log_writer_protocol.h"

#include <cstring>
#include <vector>

namespace fleetrun::launcher {

std::string encode_open(std::uint32_t index, const LogPlace& place, const LogLimits& limits) {
  OpenLog open;
  open.index = index;
  open.cap = limits.cap;
  open.keep = limits.keep;
  std::string message(reinterpret_cast<const char*>(&open), sizeof open);
  for (const std::string* text : {&place.log_dir, &place.pod, &place.attempt, &place.name})
    message.append(*text).push_back('\0');
  for (const std::string& name : place.other_names) message.append(name).push_back('\0');
  return message;
}

std::optional<OpenedLog> decode_open(std::string_view message) {
  OpenLog open;
  if (message.size() < sizeof open) return std::nullopt;
  std::memcpy(&open, message.data(), sizeof open);
  message.remove_prefix(sizeof open);
  std::vector<std::string> texts;
  while (!message.empty()) {
    const std::size_t end = message.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    texts.emplace_back(message.substr(0, end));
    message.remove_prefix(end + 1);
  }
  if (texts.size() < 4) return std::nullopt;
  OpenedLog opened;
  opened.index = open.index;
  opened.limits = {open.cap, open.keep};
  opened.place = {texts[0], texts[1], texts[2], texts[3], {texts.begin() + 4, texts.end()}};
  return opened;
}

std::optional<LogMessage> kind_of(std::string_view message) noexcept {
  LogMessage kind = LogMessage::open;
  if (message.size() < sizeof kind) return std::nullopt;
  std::memcpy(&kind, message.data(), sizeof kind);
  return kind;
}

}  // namespace fleetrun::launcher
