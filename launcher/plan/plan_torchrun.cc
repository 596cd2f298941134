#include "launcher/plan/plan_torchrun.h"

#include <algorithm>
#include <map>

#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;

/// As Template.safe_substitute() of Python: $name and ${name} that are known, and $$ for a dollar.
std::string substituted(std::string_view text, const Words& words) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    result.append(text.substr(0, dollar));
    text.remove_prefix(dollar);
    if (text.empty()) break;
    const bool braced = text.starts_with("${");
    const std::size_t begin = braced ? 2 : 1;
    const std::size_t end = std::min(text.find_first_not_of(kLetters, begin), text.size());
    const auto word = words.find(text.substr(begin, end - begin));
    const bool closed = !braced || (end < text.size() && text[end] == '}');
    const std::size_t length = text.starts_with("$$") ? 2 : closed ? end + (braced ? 1 : 0) : 1;
    if (word != words.end() && closed)
      result.append(word->second);
    else
      result.append(text.starts_with("$$") ? "$" : text.substr(0, length));
    text.remove_prefix(length);
  }
  return result;
}

/// Each process sees its own device alone, as device 0.
void make_rank_virtual(const std::string& visible, int local_rank, ProcessSpec& process) {
  const std::vector<std::string> devices = split(visible, ',');
  const auto place = static_cast<std::size_t>(local_rank);
  const std::string own = visible.empty()          ? std::to_string(local_rank)
                          : place < devices.size() ? devices[place]
                                                   : std::string();
  process.environment.set("LOCAL_RANK", "0");
  process.environment.set("CUDA_VISIBLE_DEVICES", own);
  process.environment.set("FLAGS_selected_gpus", "0");
}

}  // namespace

OutputPlan plan_output(const TorchrunSettings& torchrun, const Identity& identity, const std::string& host) {
  using To = OutputPlan::To;
  OutputPlan output;
  output.directory = torchrun.directory;
  output.prefix = substituted(torchrun.prefix, {{"role_name", identity.torch.role_name},
                                                {"local_rank", std::to_string(identity.local_rank)},
                                                {"rank", std::to_string(identity.rank)},
                                                {"hostname", host}});
  const Streams redirected = torchrun.redirects.of(identity.local_rank);
  const Streams teed = torchrun.tee.of(identity.local_rank);
  const bool wanted = torchrun.shown.empty() || torchrun.shown.contains(identity.local_rank);
  const auto to = [&](bool file) {
    if (file) return torchrun.directory.empty() ? To::nowhere : To::file;
    return wanted ? To::terminal : To::nowhere;
  };
  output.out = to(redirected.out || teed.out);
  output.err = to(redirected.err || teed.err);
  output.shown = {wanted && teed.out && output.out == To::file, wanted && teed.err && output.err == To::file};
  return output;
}

void follow_torchrun(const JobConfig& config, const HostFacts& facts, Plan& plan) {
  for (ProcessSpec& process : plan.processes) {
    const int local_rank = process.identity.local_rank;
    process.output = plan_output(*config.torchrun, process.identity, facts.host_name);
    for (std::string& word : process.argv) {
      constexpr std::string_view kMacro = "${local_rank}";
      for (std::size_t at; (at = word.find(kMacro)) != std::string::npos;)
        word.replace(at, kMacro.size(), std::to_string(local_rank));
    }
    if (!facts.has_omp_num_threads) {
      process.environment.erase("OMP_NUM_THREADS");
      if (process.identity.local_size > 1) process.environment.set("OMP_NUM_THREADS", "1");
    }
    if (config.torchrun->virtual_local_rank)
      make_rank_virtual(config.torchrun->visible_devices, local_rank, process);
  }
}

}  // namespace fleetrun::launcher
