#include "launcher/schedulers/pod_choices.h"

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestLabel = 63, kLongestName = 253;

[[noreturn]] void refuse_word(std::string_view flag, const std::string& text, const std::string& needed,
                              std::string hint = {}) {
  throw Error(ErrorKind::usage, "--" + std::string(flag) + " is '" + printable(text) + "': " + needed,
              std::move(hint));
}

bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The part of a key behind its domain, and the value of a label where it is not empty.
bool is_label_text(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kLongestLabel && is_letter_or_digit(text.front()) &&
         is_letter_or_digit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
         });
}

/// Labels of DNS, which may begin with a digit, between dots.
bool is_dns_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > kLongestName) return false;
  for (const std::string& part : split(std::string(text), '.')) {
    if (part.empty() || !is_label_text(part) ||
        std::any_of(part.begin(), part.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }))
      return false;
  }
  return true;
}

bool is_key(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_label_text(text);
  return is_dns_name(text.substr(0, slash)) && is_label_text(text.substr(slash + 1));
}

/// What stands before and behind the first '='.
std::optional<NameValue> pair_of(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos) return std::nullopt;
  return NameValue(text.substr(0, sign), text.substr(sign + 1));
}

std::optional<std::int64_t> id_of(const std::string& text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > 2'147'483'647) return std::nullopt;
  return *number;
}

}  // namespace

bool is_dns_label(std::string_view name, std::size_t longest) noexcept {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= longest && is_letter(name.front()) && name.back() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

bool is_quantity(std::string_view text) noexcept {
  std::size_t digits = 0;
  while (digits < text.size() &&
         ((text[digits] >= '0' && text[digits] <= '9') || (text[digits] == '.' && digits > 0)))
    ++digits;
  constexpr std::string_view kUnits[] = {"", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"};
  return digits > 0 &&
         std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(digits), '.') <= 1 &&
         text[digits - 1] != '.' &&
         std::find(std::begin(kUnits), std::end(kUnits), text.substr(digits)) != std::end(kUnits);
}

NameValue label_of(std::string_view flag, const std::string& text) {
  const auto pair = pair_of(text);
  if (!pair || !is_key(pair->first) || (!pair->second.empty() && !is_label_text(pair->second)))
    refuse_word(flag, text, "KEY=VALUE is needed, of letters, digits, '-', '_' and '.'",
                "for example --" + std::string(flag) + "=example.com/team=ads");
  return *pair;
}

NameValue annotation_of(std::string_view flag, const std::string& text) {
  const auto pair = pair_of(text);
  if (!pair || !is_key(pair->first)) refuse_word(flag, text, "KEY=VALUE is needed");
  return *pair;
}

NameValue environment_of(std::string_view flag, const std::string& text) {
  const auto pair = pair_of(text);
  const bool good = pair && !pair->first.empty() && !(pair->first[0] >= '0' && pair->first[0] <= '9') &&
                    std::all_of(pair->first.begin(), pair->first.end(), [](char c) {
                      return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
                    });
  if (!good) refuse_word(flag, text, "NAME=VALUE is needed");
  return *pair;
}

NameValue source_of(std::string_view flag, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : text.substr(colon + 1);
  if ((kind != "secret" && kind != "configmap") || !is_dns_name(name))
    refuse_word(flag, text, "secret:NAME or configmap:NAME is needed");
  return {kind, name};
}

NameValue resource_of(std::string_view flag, const std::string& text) {
  const auto pair = pair_of(text);
  const auto count = pair ? parse_integer(pair->second) : std::nullopt;
  if (!pair || pair->first.find('/') == std::string::npos || !is_key(pair->first) || !count || *count < 1)
    refuse_word(flag, text, "NAME=COUNT is needed, a name as nodes offer it",
                "for example --" + std::string(flag) + "=rdma/ib=1");
  return *pair;
}

std::string object_name(std::string_view flag, const std::string& text) {
  if (!is_dns_name(text)) refuse_word(flag, text, "it is not a name that Kubernetes takes");
  return text;
}

VolumeChoice volume_of(std::string_view flag, const std::string& text) {
  std::vector<std::string> parts = split(text, ':');
  VolumeChoice volume;
  if (parts.size() > 2 && (parts.back() == "ro" || parts.back() == "rw")) {
    volume.read_only = parts.back() == "ro";
    parts.pop_back();
  }
  constexpr std::string_view kKinds[] = {"pvc", "configmap", "secret", "empty"};
  const auto kind = std::find(std::begin(kKinds), std::end(kKinds), text.substr(0, text.find(':')));
  const bool empty = kind == std::end(kKinds) - 1;
  const bool sized = empty && parts.size() == 3;
  const bool whole = kind != std::end(kKinds) && (parts.size() == 3 || (empty && parts.size() == 2));
  if (!whole || !parts.back().starts_with('/') || (sized && !is_quantity(parts[1])) ||
      (!empty && !is_dns_name(parts[1])))
    refuse_word(flag, text,
                "pvc:CLAIM:/PATH[:ro], configmap:NAME:/PATH, secret:NAME:/PATH or empty[:SIZE]:/PATH is "
                "needed",
                "other kinds of volumes are not for pods under Pod Security \"restricted\"");
  volume.kind = static_cast<VolumeChoice::Kind>(kind - std::begin(kKinds));
  volume.source = empty && !sized ? "" : parts[1];
  volume.path = parts.back();
  return volume;
}

Toleration toleration_of(std::string_view flag, const std::string& text) {
  Toleration toleration;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) toleration.effect = text.substr(colon + 1);
  const std::string rest = text.substr(0, colon);
  toleration.key = rest.substr(0, rest.find('='));
  if (const auto pair = pair_of(rest)) toleration.value = pair->second;
  constexpr std::string_view kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  const bool effect = colon == std::string::npos || std::find(std::begin(kEffects), std::end(kEffects),
                                                              toleration.effect) != std::end(kEffects);
  const bool value = !toleration.value || toleration.value->empty() || is_label_text(*toleration.value);
  if (!is_key(toleration.key) || !effect || !value)
    refuse_word(flag, text,
                "KEY[=VALUE][:EFFECT] is needed, EFFECT one of NoSchedule, PreferNoSchedule, NoExecute",
                "for example --" + std::string(flag) + "=nvidia.com/gpu:NoSchedule");
  return toleration;
}

SpreadChoice spread_of(std::string_view flag, const std::string& text) {
  const std::size_t colon = text.find(':');
  const SpreadChoice spread = {text.substr(0, colon), colon != std::string::npos};
  if (!is_key(spread.key) || (spread.must && text.substr(colon) != ":must"))
    refuse_word(flag, text, "KEY or KEY:must is needed, the key of a label that nodes have",
                "for example --" + std::string(flag) + "=topology.kubernetes.io/zone");
  return spread;
}

void set_user(std::string_view flag, const std::string& text, PodChoices& choices) {
  if (text == "image") {
    choices.user = choices.group = std::nullopt;
    return;
  }
  const std::size_t colon = text.find(':');
  choices.user = id_of(text.substr(0, colon));
  choices.group = colon == std::string::npos ? choices.user : id_of(text.substr(colon + 1));
  if (!choices.user || !choices.group)
    refuse_word(flag, text, "UID, UID:GID or image is needed",
                "for example --" + std::string(flag) + "=1000");
}

void check_volumes(const std::vector<VolumeChoice>& volumes) {
  std::set<std::string> paths = {"/etc/fleetrun", "/dev/shm", "/var/log/fleetrun"};
  for (const VolumeChoice& volume : volumes) {
    if (!paths.insert(volume.path).second)
      refuse_word("volume", volume.path, "something else is mounted there", "mount it at another path");
  }
}

}  // namespace fleetrun::launcher
