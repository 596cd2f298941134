#include "dataset/tools/bad_line_rule.h"

#include "dataset/tools/refusal.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {

bool BadLineRule::take(ArgumentReader& words) {
  if (!words.is_flag() || words.word() != "--bad_line") return false;
  const std::string value = words.value();
  is_first_fatal = value == "fail";
  if (is_first_fatal) return true;
  const auto number = parse_integer(value.starts_with("skip:") ? std::string_view(value).substr(5) : "");
  if (!number || *number < 0)
    refuse_arguments("--bad_line=" + printable(value) + " is neither fail nor skip:N");
  allowed = static_cast<std::uint64_t>(*number);
  return true;
}

}  // namespace fleetrun::dataset
