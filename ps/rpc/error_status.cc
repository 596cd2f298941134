#include "ps/rpc/error_status.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace fleetrun::ps {
namespace {

constexpr std::string_view kMark = "fleetrun error";
constexpr std::size_t kLongestText = 2048;
constexpr std::array kKinds = {ErrorKind::usage,   ErrorKind::config,  ErrorKind::host, ErrorKind::spawn,
                               ErrorKind::network, ErrorKind::timeout, ErrorKind::data};

// One line of at most kLongestText bytes.
std::string line(std::string_view text) {
  std::string out(text.substr(0, kLongestText));
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace

ErrorTexts to_texts(const Error& error) {
  std::string details(kMark);
  details.append("\n").append(to_string(error.kind())).append("\n").append(line(error.hint()));
  for (const std::string& context : error.context()) details.append("\n").append(line(context));
  details.resize(std::min(details.size(), 2 * kLongestText));
  return {line(error.what()), std::move(details)};
}

std::optional<Error> error_from(const ErrorTexts& texts) {
  std::istringstream lines(texts.details);
  std::string mark;
  std::string kind_name;
  std::string hint;
  if (!std::getline(lines, mark) || mark != kMark || !std::getline(lines, kind_name)) return std::nullopt;
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](ErrorKind k) { return to_string(k) == kind_name; });
  if (kind == kKinds.end()) return std::nullopt;
  std::getline(lines, hint);
  Error error(*kind, texts.message, hint);
  for (std::string context; std::getline(lines, context);) error.while_doing(context);
  return error;
}

}  // namespace fleetrun::ps
