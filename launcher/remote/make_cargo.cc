#include "launcher/remote/make_cargo.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "launcher/host/find_program.h"
#include "launcher/remote/ship_environment.h"
#include "launcher/remote/shipment.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

namespace fs = std::filesystem;

/// Loaded when hosts meet, where the system has them; else those that came along.
constexpr const char* kLibraries[] = {"libcrypto.so.3", "libssl.so.3"};
constexpr std::uint64_t kMuch = 1ULL << 30;

std::string normal(const std::string& path) {
  std::string text = fs::path(absolute_path(path)).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool contains(const std::string& folder, const std::string& path) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

/// Where the system has the library; empty: nowhere.
std::string path_of_library(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (!handle || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  return map->l_name;
}

void add_launcher(ship::Cargo& cargo, const std::string& program) {
  cargo.launcher = program;
  const std::string folder = ship::launcher_folder(launcher_of(cargo));
  cargo.list.items.push_back({ship::Kind::directory, folder, 0700, 0, 0, 0, ""});
  cargo.sources.push_back(directory_of(program));
  for (const char* name : {"fleetrun-init", "fleetrun-log"})
    add_file(cargo, directory_of(program) + "/" + name, folder + "/" + name);
  for (const char* name : kLibraries) {
    if (const std::string path = path_of_library(name); !path.empty())
      add_file(cargo, path, folder + "/" + name);
  }
}

/// "from/me@h1": two heads of a user do not lie in each other's files.
std::string prefix_of(const Environ& environ) {
  const std::string name = host_name();
  std::string text =
      environ.value_or("USER", std::to_string(::getuid())) + "@" + (name.empty() ? "head" : name);
  std::replace(text.begin(), text.end(), '/', '_');
  return "from/" + text;
}

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

/// The name below one of the folders that has most in it: what a user leaves out first.
std::string largest_part(const ship::List& list) {
  std::map<std::string, std::uint64_t> parts;
  for (const ship::Item& item : list.items) {
    for (const std::string& folder : list.folders) {
      if (!item.path.starts_with(folder + "/")) continue;
      const std::string below = item.path.substr(folder.size() + 1);
      parts[below.substr(0, below.find('/'))] += item.size;
    }
  }
  const auto most = std::max_element(parts.begin(), parts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == parts.end() ? "" : most->first + " has " + mebibytes(most->second) + " of it";
}

}  // namespace

std::vector<std::string> paths_to_ship(const JobConfig& config, const std::optional<std::string>& script,
                                       const std::string& directory, const std::string& home) {
  std::vector<std::string> paths;
  for (const std::string& word : split(config.host_list.ship.value_or(""), ',')) {
    if (word.empty() || word == "script" || word == "venv") continue;
    paths.push_back(normal(word));
    if (::access(paths.back().c_str(), F_OK) != 0)
      throw Error(ErrorKind::config, "--ship names " + printable(paths.back()) + ", which is not there",
                  "name files and folders of this machine; venv is the virtual environment");
  }
  const bool is_module = config.script_kind == ScriptKind::module && !config.file;
  const std::string own = script.value_or("");
  const bool on_path = own.find('/') == std::string::npos && ::access(own.c_str(), F_OK) != 0;
  const std::string needed = is_module || on_path ? directory : normal(own);
  if (!is_module && on_path && (own.ends_with(".py") || config.file))
    throw Error(ErrorKind::config, "script '" + printable(own) + "' is not there",
                "check the name and the current directory");
  if (std::any_of(paths.begin(), paths.end(),
                  [&](const std::string& path) { return contains(path, needed); }))
    return paths;
  const std::string folder = is_module || on_path ? needed : directory_of(needed);
  if (folder == "/" || folder == home || folder == "/tmp" || contains(folder, home))
    throw Error(ErrorKind::config,
                "all of " + printable(folder) + " would travel, since the script lies there",
                "put the script into a folder of its own, or name what is to travel: --ship=" +
                    (on_path || is_module ? std::string("FILE,FOLDER") : printable(own)));
  paths.push_back(folder);
  return paths;
}

std::shared_ptr<const ship::Cargo> make_cargo(const JobConfig& config, ControllerPlan& plan,
                                              const ControllerPlace& place, const Environ& environ,
                                              std::vector<std::string>& notes) {
  if (!config.host_list.ship) return nullptr;
  const bool all_here =
      std::all_of(plan.hosts.begin(), plan.hosts.end(), [](const HostPart& part) { return part.here; });
  if (all_here) {
    notes.push_back("--ship has nothing to do: this is the only host");
    return nullptr;
  }
  auto cargo = std::make_shared<ship::Cargo>();
  cargo->root = config.host_list.ship_to;
  cargo->list.prefix = prefix_of(environ);
  cargo->list.removed = config.host_list.ship_remove;
  ship::start_script(cargo->root, {}, "");  // refused here, before anything is read
  for (const std::string& part : {std::string("from"), cargo->list.prefix}) {
    cargo->list.items.push_back({ship::Kind::directory, part, 0700, 0, 0, 0, ""});
    cargo->sources.push_back("/");
  }
  add_launcher(*cargo, place.program);
  add_directory(*cargo, place.directory);
  ship::TreeChoice choice;
  choice.left_out = config.host_list.ship_exclude;
  choice.not_inside = {normal(config.log_dir)};
  const std::optional<std::string>& script = plan.hosts.front().order.script;
  for (const std::string& path :
       paths_to_ship(config, script, place.directory, environ.value_or("HOME", "/root")))
    add_tree(*cargo, path, choice);
  const std::vector<std::string> words = split(*config.host_list.ship, ',');
  if (std::find(words.begin(), words.end(), "venv") != words.end()) {
    const std::string python = add_environment(*cargo, config, environ, directory_of(place.program));
    for (HostPart& part : plan.hosts) part.order.values["python"] = python;
  }
  if (const std::uint64_t bytes = bytes_of(cargo->list); bytes > kMuch)
    notes.push_back("--ship sends up to " + mebibytes(bytes) + " to each host; " + largest_part(cargo->list) +
                    ", which --ship_exclude leaves out");
  return cargo;
}

}  // namespace fleetrun::launcher::remote
