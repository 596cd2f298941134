// Names, logs, and what of them is shown. torchrun's --tee, --redirects and --local_ranks_filter say in its
// words what --show says in ours: every stream is in a log in any case.
#include <algorithm>

#include "launcher/config/job_config_values.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxRanks = 65535;
constexpr int kMaxKept = 1000;

LogLevel log_level(const Value& value) {
  std::string text = value.text;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const LogLevel level :
       {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::critical}) {
    if (text == to_string(level)) return level;
  }
  if (text == "WARN") return LogLevel::warning;
  refuse(value, "there is no such level", "use DEBUG, INFO, WARNING, ERROR or CRITICAL");
}

/// "3" or "1-4".
std::vector<int> rank_range(const Value& value, const std::string& part) {
  const std::size_t dash = part.find('-');
  const auto first = parse_integer(part.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > kMaxRanks)
    refuse(value, "'" + printable(part) + "' is not a rank", "write ranks as 0,3 or 0-3");
  std::vector<int> ranks;
  for (std::int64_t rank = *first; rank <= *last; ++rank) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

Show read_show(const Value& value, const JobConfig& config) {
  using Kind = Show::Kind;
  for (const auto& [word, kind] :
       {std::pair{"first", Kind::first}, {"all", Kind::all}, {"fail", Kind::failed}, {"none", Kind::none}}) {
    if (value.text == word) return {kind, {}, {}};
  }
  Show show = {Kind::chosen, {}, {}};
  for (const std::string& part : read_list(value, "first, all, fail, none, 0,3 or server")) {
    if (part[0] >= '0' && part[0] <= '9') {
      const std::vector<int> ranks = rank_range(value, part);
      show.trainers.insert(show.trainers.end(), ranks.begin(), ranks.end());
    } else {
      check_role(value, part, config);
      show.roles.push_back(part);
    }
  }
  return show;
}

/// torchrun's "3" (all) or "0:3,1:1" (by local rank): which trainers have a stream chosen.
/// `all` is set for the first form.
std::vector<int> ranks_with_streams(const Value& value, bool& all) {
  std::vector<int> ranks;
  const auto streams = [&](std::string_view text) {
    const auto number = parse_integer(text);
    if (!number || *number < 0 || *number > 3)
      refuse(value, "a number of streams is needed",
             "0 none, 1 output, 2 errors, 3 both; or by rank: 0:3,1:3");
    return *number != 0;
  };
  all = value.text.find(':') == std::string::npos;
  if (all) {
    all = streams(value.text);
    return ranks;
  }
  for (const std::string& part : read_list(value, "0:3,1:3")) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) refuse(value, "a rank is needed for every part", "write it as 0:3,1:3");
    if (streams(std::string_view(part).substr(colon + 1)))
      ranks.push_back(rank_range(value, part.substr(0, colon)).front());
  }
  return ranks;
}

Show torchrun_show(const Values& values) {
  Show show;
  bool all = false;
  if (values.given("local_ranks_filter")) {
    show.kind = Show::Kind::chosen;
    for (const std::string& part : read_list(values["local_ranks_filter"], "0,1,2"))
      show.trainers.push_back(rank_range(values["local_ranks_filter"], part).front());
    return show;
  }
  const std::vector<int> redirected = ranks_with_streams(values["redirects"], all);
  if (all) show.kind = Show::Kind::none;
  const std::vector<int> teed = ranks_with_streams(values["tee"], all);
  if (all)
    show.kind = Show::Kind::all;
  else if (!teed.empty())
    show = {Show::Kind::chosen, teed, {}};
  return show;
}

}  // namespace

void read_logs(const Values& values, JobConfig& config) {
  config.job_id = read_file_safe_name(values["job_id"]);
  config.log_dir = values["log_dir"].text;
  if (config.log_dir.empty()) refuse(values["log_dir"], "the logs need a directory");
  config.log_overwrite = read_truth(values["log_overwrite"]);
  config.log_level = log_level(values["log_level"]);
  config.log_through = read_truth(values["log_through"]);
  if (values.given("log_cap")) {
    config.log_cap = read_size(values["log_cap"]);
    if (!config.log_through)
      refuse(values["log_cap"], "only a log with a writer can be capped", "add --log_through");
  }
  config.log_keep = static_cast<int>(read_whole_number(values["log_keep"], 1, kMaxKept));
  const Show other = torchrun_show(values);
  config.show = values.given("show") ? read_show(values["show"], config) : other;
  config.color = read_word<Color>(
      values["color"], {{"auto", Color::automatic}, {"always", Color::always}, {"never", Color::never}});
}

}  // namespace fleetrun::launcher
