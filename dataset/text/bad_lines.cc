#include "dataset/text/bad_lines.h"

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

std::string lines_counted(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " bad line" : " bad lines");
}

std::string hint_for(const LineFault& fault) {
  if (fault.packed)
    return "give the file a name that ends in .gz, .zst, .bz2 or .xz, so that it is unpacked, or unpack it "
           "in the pipe command";
  return "mend the data or what prints it; --bad_line=skip:N passes over up to N such lines";
}

}  // namespace

BadLinePolicy bad_line_policy_of(std::string_view text) {
  constexpr std::string_view skip = "skip:";
  if (text == "fail") return {};
  const auto count = text.starts_with(skip) ? parse_integer(text.substr(skip.size())) : std::nullopt;
  if (!count || *count < 1)
    throw Error(ErrorKind::config, "bad_line='" + printable(text) + "' is not a way to treat bad lines",
                "it is fail, or skip:N for up to N bad lines, N above 0");
  return {.skip = static_cast<std::uint64_t>(*count)};
}

std::string to_string(const BadLinePolicy& policy) {
  return policy.skip == 0 ? "fail" : "skip:" + std::to_string(policy.skip);
}

std::string to_string(const BadLineReport& report) {
  std::string text = lines_counted(report.count) + (report.count == 1 ? " was skipped" : " were skipped");
  for (std::size_t i = 0; i < report.places.size(); ++i)
    text.append(i == 0 ? ": " : "; ").append(report.places[i]);
  return report.count > report.places.size() ? text.append("; …") : text;
}

void BadLines::add(const std::string& file, const std::string& command, const LineFault& fault) {
  const std::string place = file + ":" + to_string(fault);
  const std::lock_guard lock(mutex_);
  if (report_.count < policy_.skip) {
    ++report_.count;
    if (report_.places.size() < kPlaces) report_.places.push_back(place);
    return;
  }
  Error error(ErrorKind::data, place, hint_for(fault));
  if (!command.empty())
    error.while_doing("reading the output of the pipe command '" + printable(command) + "'");
  if (policy_.skip > 0)
    error.while_doing("reading on, as " + to_string(policy_) + " says, after " + to_string(report_));
  throw error;
}

BadLineReport BadLines::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void BadLines::clear() {
  const std::lock_guard lock(mutex_);
  report_ = {};
}

}  // namespace fleetrun::dataset
