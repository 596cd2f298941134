// A child that calls setsid(), forks twice or stops itself leaves its process group and its parent, but
// neither its cgroup nor the subreaper above it. Without a writable cgroup v2 the second is what is left, and
// it is enough as long as init or fleetrun lives.
#include "launcher/init/containment.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "launcher/init/process_table.h"

namespace fleetrun::launcher {
namespace {

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

/// Linux 6.14 and later, and what they were carried back to, compare the kills of the new cgroup with those
/// of the caller's: after a cgroup.kill in that, everything that is cloned into another dies at birth.
bool can_live_in(const CgroupLeaf& leaf) {
  clone_args args = {};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(leaf.directory.value());
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
  if (pid == 0) ::_exit(0);
  int status = 0;
  return pid == -1 || ::waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status);
}

/// Containers may share a tree of cgroups, and have the same process ids: "4026531836".
std::string pid_namespace() {
  struct stat own = {};
  return std::to_string(::stat("/proc/self/ns/pid", &own) == 0 ? own.st_ino : 0);
}

}  // namespace

CgroupLeaf make_cgroup_leaf(const std::string& pod) {
  const std::string name = "fleetrun-" + pod + "-" + pid_namespace() + "-" + std::to_string(::getpid());
  const std::string parent = own_cgroup_directory();
  CgroupLeaf leaf;
  if (parent.empty()) {
    leaf.refusal = "no cgroup v2 is mounted";
    return leaf;
  }
  leaf = make_cgroup(parent + "/" + name);
  // The root of all cgroups has no such file and cannot have been killed:
  // there the question is not worth a fork.
  const bool maybe_killed = !leaf.path.empty() && ::access((parent + "/cgroup.kill").c_str(), F_OK) == 0;
  if (!maybe_killed || can_live_in(leaf)) return leaf;
  ::rmdir(leaf.path.c_str());
  leaf = {};
  leaf.refusal = "cgroup.kill was used in " + parent + ", and this kernel kills whatever is started below it";
  return leaf;
}

CgroupLeaf make_cgroup(const std::string& path) {
  CgroupLeaf leaf;
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST)
    leaf.directory.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (leaf.directory)
    leaf.path = path;
  else
    leaf.refusal = "no cgroup can be made at " + path + ": " + ::strerror(errno);
  return leaf;
}

bool kill_cgroup(const std::string& path) {
  const UniqueFd fd(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.value(), "1", 1) == 1;
}

std::vector<pid_t> processes_in_cgroup(const std::string& path) {
  std::vector<pid_t> pids;
  each_line(read_whole(path + "/cgroup.procs"), [&](std::string_view line) {
    pids.push_back(static_cast<pid_t>(std::strtol(line.data(), nullptr, 10)));
    return false;
  });
  return pids;
}

bool cgroup_is_empty(const std::string& path) {
  return read_whole(path + "/cgroup.events").find("populated 1") == std::string::npos;
}

void remove_cgroup(const std::string& path) {
  constexpr timespec kPause = {0, 1'000'000};
  if (::rmdir(path.c_str()) == 0) return;
  if (DIR* directory = ::opendir(path.c_str())) {
    while (const dirent* entry = ::readdir(directory)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') remove_cgroup(path + "/" + entry->d_name);
    }
    ::closedir(directory);
  }
  for (int attempt = 0; attempt < 100 && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++attempt)
    ::nanosleep(&kPause, nullptr);
}

void remove_stale_cgroups(const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/'));
  const std::string beside = "-" + pid_namespace() + "-";
  DIR* directory = ::opendir(parent.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    const std::size_t number = name.rfind('-') + 1;
    const bool comparable = name.starts_with("fleetrun-") && name.substr(0, number).ends_with(beside);
    if (entry->d_type != DT_DIR || !comparable) continue;
    const long pid = std::strtol(name.c_str() + number, nullptr, 10);
    const std::string leaf = parent + "/" + name;
    const std::string state = pid > 1 ? state_of(static_cast<pid_t>(pid)).state : "?";
    if ((state.empty() || state == "Z") && cgroup_is_empty(leaf)) remove_cgroup(leaf);
  }
  ::closedir(directory);
}

void kill_everything_below(const std::string& cgroup_path) {
  if (!cgroup_path.empty()) kill_cgroup(cgroup_path);
  for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGKILL);
}

}  // namespace fleetrun::launcher
