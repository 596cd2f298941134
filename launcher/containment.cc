// A child that calls setsid(), forks twice or stops itself leaves its process group and its parent, but
// neither its cgroup nor the subreaper above it. Without a writable cgroup v2 the second is what is left, and
// it is enough as long as init or fleetrun lives.
#include "launcher/containment.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

namespace fleetrun::launcher {
namespace {

std::string read_whole(const char* path) {
  std::string text;
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char block[8192];
  for (ssize_t got; (got = ::read(fd.value(), block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  return text;
}

/// Calls `use(line)` for each line of `text` until it returns true.
template <class Use>
void each_line(const std::string& text, Use&& use) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (use(std::string_view(text).substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

/// "35 24 0:30 ROOT MOUNTPOINT OPTIONS … - cgroup2 …": the place where the v2 tree is mounted, and its root
/// in the tree.
bool find_cgroup2_mount(std::string& mount_point, std::string& root) {
  bool found = false;
  each_line(read_whole("/proc/self/mountinfo"), [&](std::string_view line) {
    if (line.find(" - cgroup2 ") == std::string_view::npos) return false;
    std::string_view fields[5];
    for (std::string_view& field : fields) {
      field = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(field.size() + 1, line.size()));
    }
    root = fields[3];
    mount_point = fields[4];
    found = mount_point.find('\\') == std::string::npos;  // an escaped blank: not worth supporting
    return found;
  });
  return found;
}

std::string own_cgroup_directory() {
  std::string mount_point, root, own;
  if (!find_cgroup2_mount(mount_point, root)) return {};
  each_line(read_whole("/proc/self/cgroup"), [&](std::string_view line) {
    if (!line.starts_with("0::/")) return false;
    own = line.substr(3);
    return true;
  });
  if (own.empty() || own.find("/../") != std::string::npos) return {};
  if (root != "/" && own.starts_with(root)) own = own.substr(root.size());
  return mount_point + (own == "/" ? "" : own);
}

struct Ancestry {
  pid_t parent = 0;
  char state = '?';
};

/// "1234 (any name) S 1 …"
bool parse_stat(const std::string& text, Ancestry& ancestry) {
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos || close + 4 >= text.size()) return false;
  ancestry.state = text[close + 2];
  ancestry.parent = static_cast<pid_t>(std::strtol(text.c_str() + close + 4, nullptr, 10));
  return true;
}

}  // namespace

CgroupLeaf make_cgroup_leaf(const std::string& name) {
  CgroupLeaf leaf;
  const std::string parent = own_cgroup_directory();
  if (parent.empty()) return leaf;
  const std::string path = parent + "/" + name;
  if (::mkdir(path.c_str(), 0700) != 0) return leaf;
  leaf.directory.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!leaf.directory) {
    ::rmdir(path.c_str());
    return leaf;
  }
  leaf.path = path;
  return leaf;
}

bool kill_cgroup(const std::string& path) {
  const UniqueFd fd(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.value(), "1", 1) == 1;
}

void remove_cgroup(const std::string& path) {
  constexpr timespec kPause = {0, 1'000'000};
  for (int attempt = 0; attempt < 100 && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++attempt)
    ::nanosleep(&kPause, nullptr);
}

std::vector<pid_t> descendants_of(pid_t root) {
  std::unordered_map<pid_t, Ancestry> processes;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return {};
  while (const dirent* entry = ::readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    Ancestry ancestry;
    const std::string path = std::string("/proc/") + entry->d_name + "/stat";
    if (parse_stat(read_whole(path.c_str()), ancestry))
      processes.emplace(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), ancestry);
  }
  ::closedir(proc);

  std::vector<pid_t> found;
  for (const auto& [pid, ancestry] : processes) {
    if (ancestry.state == 'Z' || ancestry.state == 'X') continue;
    pid_t above = ancestry.parent;
    for (std::size_t depth = 0; above > 1 && above != root && depth <= processes.size(); ++depth) {
      const auto parent = processes.find(above);
      above = parent == processes.end() ? 0 : parent->second.parent;
    }
    if (above == root) found.push_back(pid);
  }
  return found;
}

void kill_everything_below(const std::string& cgroup_path) {
  if (!cgroup_path.empty()) kill_cgroup(cgroup_path);
  for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGKILL);
}

}  // namespace fleetrun::launcher
