// The settings of a job as texts, each with where it came from, and the readers that turn one into a typed
// value or refuse it by the name under which the user wrote it. Pure; used by the job_config_*.cc alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/model/job_config.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct Value {
  std::string text;
  std::string name;  // what the user has to change: "--server_num" or "PADDLE_SERVER_NUM"
  Source source = Source::standard;
};

/// One Value for every row of launcher/model/job_settings: of the flag, the environment, or the default.
class Values {
 public:
  /// `notes` gets a line for each setting whose flag and variable disagree.
  Values(const Options& options, const Environ& environ, std::vector<std::string>& notes);

  const Value& operator[](std::string_view key) const { return values_.find(key)->second; }
  Value& at(std::string_view key) { return values_.find(key)->second; }
  bool given(std::string_view key) const { return (*this)[key].source != Source::standard; }

 private:
  std::map<std::string_view, Value> values_;
};

/// Throws: Error(usage) or Error(config), by where the value came from: "NAME is 'TEXT': WANTED".
[[noreturn]] void refuse(const Value& value, const std::string& wanted, std::string hint = {});

std::int64_t read_whole_number(const Value& value, std::int64_t min, std::int64_t max);
std::uint16_t read_port(const Value& value);
bool read_truth(const Value& value);
std::chrono::milliseconds read_duration(const Value& value);
/// "4096", "64K", "64M", "2G", "1T": bytes, by powers of 1024.
std::uint64_t read_size(const Value& value);
/// Neither empty as a whole nor in any part, and nothing twice.
std::vector<std::string> read_list(const Value& value, std::string_view example);
/// "a=1,b=2", in the order written; no name twice.
std::vector<std::pair<std::string, std::string>> read_pairs(const Value& value, std::string_view example);
/// A name that becomes part of file names: no separators, no leading dot or dash, nothing a terminal acts on.
std::string read_file_safe_name(const Value& value);
std::string read_host_address(const Value& value);
/// The same value with a part of its text, for the readers above.
Value part_of(const Value& value, std::string text);

/// One of `words`, each standing for the enumerator beside it.
template <class Enum>
Enum read_word(const Value& value, std::initializer_list<std::pair<std::string_view, Enum>> words) {
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (value.text == word) return meaning;
    known.append(known.empty() ? "" : ", ").append(word);
  }
  refuse(value, "there is no such choice", "use one of " + known);
}

// The groups, in the order in which they are read. Each fills its part of `config`, the mode being known.
void read_processes(const Values& values, JobConfig& config);
void read_network(const Values& values, JobConfig& config);
void read_hosts(const Values& values, const Environ& environ, JobConfig& config);
/// Whether Slurm or Kubernetes says where the hosts meet; it is asked where the user has not said so.
bool read_engine(const Values& values, const Environ& environ, JobConfig& config);
/// People know a pod of Kubernetes by its name, whatever its address is.
void name_pod(const Environ& environ, JobConfig& config);
void read_logs(const Values& values, JobConfig& config);
void read_run(const Values& values, JobConfig& config);
void read_watch(const Values& values, JobConfig& config);
void read_restart(const Values& values, JobConfig& config);
/// Throws where --on_failure=replace does not fit the job.
void check_replacement(const Values& values, const JobConfig& config);
void check_moving_servers(const Values& values, const JobConfig& config);

/// Throws where the value names a role that the job does not have. Any role may be named beside a job file.
void check_role(const Value& value, std::string_view role, const JobConfig& config);

}  // namespace fleetrun::launcher
