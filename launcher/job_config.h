// What the user wants, from the command line and the environment, checked and typed. Pure.
//
// A flag wins over the environment; where the two disagree there is a note, which is shown as a warning.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/hang_rules.h"
#include "launcher/injection.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/environ.h"
#include "runtime/base/identity.h"

namespace fleetrun::launcher {

/// What was written on the command line, by setting key. Nothing in it has been checked yet.
struct Options {
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, std::string, std::less<>> spelled;  // the flag as the user wrote it: "--gpus"
  std::optional<std::string> script;
  std::vector<std::string> script_args;
};

enum class Source { standard, environment, flag };
enum class DryRun { no, text, json, sh };
enum class LogLevel { debug, info, warning, error, critical };

/// One line of the LAUNCH INFO listing.
struct ListedSetting {
  std::string key, value;
  Source source = Source::standard;
  bool operator==(const ListedSetting&) const = default;
};

struct JobConfig {
  Mode mode = Mode::collective;
  std::string job_id;
  std::string script;
  std::vector<std::string> script_args;

  std::optional<int> server_num, trainer_num, nproc_per_node;
  std::vector<Endpoint> servers, trainers;  // as the user wrote them; empty: chosen by the planner
  std::optional<std::vector<std::string>> devices;

  std::string host = "127.0.0.1";
  std::optional<std::uint16_t> start_port;  // only when the user chose it
  std::string with_gloo;
  std::uint16_t gloo_port = 0;
  bool gloo_port_chosen = false;
  std::string auto_cluster;

  std::string log_dir;
  bool log_overwrite = false;
  LogLevel log_level = LogLevel::info;

  std::optional<std::string> python;
  bool compat_paddle = false;
  std::chrono::milliseconds ready_timeout{}, grace{};
  HangRules hang;
  std::vector<Injection> inject;
  std::optional<std::uint64_t> inject_seed;  // nullopt: not chosen
  DryRun dry_run = DryRun::no;
  int max_restart = 0;

  std::vector<ListedSetting> listing;  // Paddle's keys, then ours, each in alphabetical order
  std::vector<std::string> notes;      // what was understood differently from what was asked
};

/// Throws: Error(usage) for a flag, Error(config) for an environment variable; the message names it and its
/// value.
JobConfig make_job_config(const Options& options, const Environ& environ);

std::string_view to_string(LogLevel level) noexcept;

/// The number of servers and trainers that are to run, all of them on this host.
int servers_of(const JobConfig& config) noexcept;

}  // namespace fleetrun::launcher
