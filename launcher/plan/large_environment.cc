#include "launcher/plan/large_environment.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

constexpr const char* kLists[] = {"PADDLE_TRAINER_ENDPOINTS", "FLEETRUN_ENDPOINTS"};
constexpr std::size_t kLongestString = 128 * 1024;  // of one "NAME=VALUE", with its end: MAX_ARG_STRLEN

std::string backup_path(const Plan& plan) {
  return plan.log_dir + "/" + plan.pod_name + "/backup_env.json";
}

/// What a string costs: its bytes, its end, and a pointer to it.
std::size_t cost(std::size_t length) {
  return length + 1 + sizeof(char*);
}

struct Size {
  std::size_t bytes = 0, largest_bytes = 0;
  std::string largest;

  void add(const std::string& name, const std::string& value) {
    const std::size_t length = name.size() + 1 + value.size();
    bytes += cost(length);
    if (length <= largest_bytes) return;
    largest_bytes = length;
    largest = name;
  }
};

/// `base` without what the process unsets or has otherwise, then its own.
Size environment_size(const ProcessSpec& process, const Environ& base) {
  Size size;
  for (const auto& [name, value] : base.values()) {
    const bool unset = std::find(process.unset.begin(), process.unset.end(), name) != process.unset.end();
    if (!unset && !process.environment.has(name)) size.add(name, value);
  }
  for (const auto& [name, value] : process.environment.values()) size.add(name, value);
  return size;
}

}  // namespace

void move_large_lists(const Plan& plan, ProcessSpec& process, std::size_t limit, Environ& moved) {
  for (const char* name : kLists) {
    const std::string* value = process.environment.find(name);
    if (!value || value->size() < limit) continue;
    if (!moved.has(name)) moved.set(name, *value);
    process.environment.erase(name);
    process.environment.set("PADDLE_BACKUP_ENV_PATH", backup_path(plan));
    std::erase(process.unset, "PADDLE_BACKUP_ENV_PATH");
    process.unset.emplace_back(name);
  }
}

void move_large_lists(Plan& plan, std::size_t limit, Environ moved) {
  for (ProcessSpec& process : plan.processes) move_large_lists(plan, process, limit, moved);
  nlohmann::ordered_json lists = nlohmann::ordered_json::object();
  for (const char* name : kLists)
    if (const std::string* value = moved.find(name)) lists[name] = *value;
  if (!lists.empty()) plan.backup = BackupFile{backup_path(plan), json_text(lists, 4) + "\n"};
}

void write_backup(const Plan& plan) {
  if (!plan.backup) return;
  const std::string& path = plan.backup->path;
  const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
  check_errno(file.value(), "open", "writing " + path);
  check_errno(write_all(file.value(), plan.backup->text) ? 0 : -1, "write", "writing " + path);
}

std::size_t max_exec_bytes() {
  constexpr std::size_t kMin = 128 * 1024, kMax = 6 * 1024 * 1024;  // as fs/exec.c has it
  rlimit stack = {};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY) return kMax;
  return std::clamp(static_cast<std::size_t>(stack.rlim_cur / 4), kMin, kMax);
}

void check_exec_size(const Plan& plan, const Environ& base, std::size_t max_bytes) {
  for (const RolePlan& role : plan.roles) {
    const auto index = static_cast<std::size_t>(&role - plan.roles.data());
    const auto process = std::find_if(plan.processes.begin(), plan.processes.end(),
                                      [&](const ProcessSpec& spec) { return spec.role == index; });
    if (process == plan.processes.end()) continue;  // those of a role have the same variables
    Size size = environment_size(*process, base);
    for (const std::string& argument : process->argv) size.bytes += cost(argument.size());
    size.bytes += cost(process->program.size());
    if (size.bytes <= max_bytes && size.largest_bytes < kLongestString) continue;
    const bool one = size.largest_bytes >= kLongestString;
    throw Error(
        ErrorKind::config,
        process->name + " cannot be started: " +
            (one ? "variable " + printable(size.largest) + " has " + std::to_string(size.largest_bytes) +
                       " bytes, and this system allows " + std::to_string(kLongestString - 1)
                 : "arguments and environment have " + std::to_string(size.bytes) +
                       " bytes, and this system allows " + std::to_string(max_bytes) +
                       "; the largest variable is " + printable(size.largest) + " with " +
                       std::to_string(size.largest_bytes)),
        "unset what the job does not need, " + printable(size.largest) + " first");
  }
}

}  // namespace fleetrun::launcher
