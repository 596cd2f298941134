#include "runtime/base/process_environment.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "runtime/base/text.h"

namespace fleetrun {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether the process has ended, or was started with no variables at all.
bool has_no_environment(const std::string& directory) {
  std::error_code none;
  if (std::filesystem::read_symlink(directory + "/exe", none).empty()) return true;  // ended, or the kernel's
  const std::string status = content_of(directory + "/stat");
  const std::vector<std::string> fields = split(status.substr(status.rfind(')') + 1), ' ');
  constexpr std::size_t env_start = 50 - 2, env_end = 51 - 2;  // as proc(5) numbers them, the name is the 2nd
  if (fields.size() <= env_end) return true;
  return fields[env_start] == fields[env_end] && fields[env_end] != "0";
}

}  // namespace

bool was_started_with(pid_t pid, const std::vector<std::string>& entries) {
  if (entries.empty()) return false;
  const std::string directory = "/proc/" + std::to_string(pid);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::string environment = content_of(directory + "/environ");
  while (environment.empty() && !has_no_environment(directory) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    environment = content_of(directory + "/environ");
  }
  const std::string text = '\0' + environment + '\0';
  return std::ranges::all_of(
      entries, [&](const std::string& entry) { return text.find('\0' + entry + '\0') != std::string::npos; });
}

}  // namespace fleetrun
