#include "launcher/ship/read_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::ship {
namespace {

constexpr std::size_t kBlock = 256 << 10;
/// What tools make of the rest, and what only its user's editor or shell wants.
constexpr std::string_view kMadeAnew[] = {".git",        ".hg",           ".svn",  "__pycache__",
                                          ".mypy_cache", ".pytest_cache", ".tox",  ".ipynb_checkpoints",
                                          ".ruff_cache", ".nox",          ".idea", ".vscode",
                                          "node_modules"};

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

std::vector<std::string> names_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> entries(::opendir(directory.c_str()));
  check_errno(entries ? 0 : -1, "opendir", "reading " + printable(directory) + " for --ship");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
  return resolved ? resolved.get() : "";
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

class Walk {
 public:
  Walk(Cargo& cargo, const std::string& top, const TreeChoice& choice)
      : cargo_(cargo), top_(top), real_top_(real_path(top)), choice_(choice) {}

  void visit(const std::string& path) {
    struct stat facts = {};
    check_errno(::lstat(path.c_str(), &facts), "lstat", "reading " + printable(path) + " for --ship");
    if (S_ISDIR(facts.st_mode)) return visit_folder(path, facts.st_mode);
    if (S_ISLNK(facts.st_mode)) return visit_link(path);
    const bool adapted = choice_.environment && path == top_ + std::string(kEnvironmentFile);
    if (S_ISREG(facts.st_mode))
      add_file(cargo_, path, cargo_.list.prefix + path + (adapted ? std::string(kAdapted) : ""));
  }

 private:
  bool is_left_out(const std::string& name, const std::string& path) const {
    if (name.starts_with(".fleetrun-") || name.starts_with(".nfs")) return true;
    if (std::find(choice_.not_inside.begin(), choice_.not_inside.end(), path) != choice_.not_inside.end())
      return true;
    for (const std::string& pattern : choice_.left_out) {
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
          ::fnmatch(pattern.c_str(), path.c_str() + std::min(path.size(), top_.size() + 1), 0) == 0)
        return true;
    }
    if (choice_.environment) return false;
    return std::find(std::begin(kMadeAnew), std::end(kMadeAnew), name) != std::end(kMadeAnew) ||
           ::access((path + "/pyvenv.cfg").c_str(), F_OK) == 0;
  }

  void visit_folder(const std::string& path, mode_t mode) {
    cargo_.list.items.push_back({Kind::directory, cargo_.list.prefix + path, mode & 0777, 0, 0, 0, ""});
    cargo_.sources.push_back(path);
    for (const std::string& name : names_in(path)) {
      const std::string inside = (path == "/" ? "" : path) + "/" + name;
      if (!is_left_out(name, inside)) visit(inside);
    }
  }

  void visit_link(const std::string& path) {
    char target[PATH_MAX + 1] = {};
    const ssize_t size = ::readlink(path.c_str(), target, PATH_MAX);
    check_errno(size < 0 ? -1 : 0, "readlink", "reading " + printable(path) + " for --ship");
    const std::string leads_to = real_path(path);
    struct stat facts = {};
    const auto& folders = cargo_.list.folders;
    if (std::find(folders.begin(), folders.end(), cargo_.list.prefix + leads_to) != folders.end()) {
      cargo_.list.items.push_back({Kind::link, cargo_.list.prefix + path, 0777, 0, 0, 0, leads_to});
      cargo_.sources.push_back(path);
      return;
    }
    if (!leads_to.empty() && !is_below(leads_to, real_top_) && ::stat(path.c_str(), &facts) == 0 &&
        S_ISREG(facts.st_mode))
      return add_file(cargo_, path, cargo_.list.prefix + path);
    cargo_.list.items.push_back({Kind::link, cargo_.list.prefix + path, 0777, 0, 0, 0,
                                 std::string(target, static_cast<std::size_t>(size))});
    cargo_.sources.push_back(path);
  }

  Cargo& cargo_;
  const std::string top_, real_top_;
  const TreeChoice& choice_;
};

}  // namespace

std::uint64_t digest_of_file(const std::string& path) {
  const std::string doing = "reading " + printable(path) + " for --ship";
  const UniqueFd file(check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open", doing));
  ContentDigest digest;
  std::vector<std::byte> block(kBlock);
  for (;;) {
    const ssize_t count = ::read(file.value(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    check_errno(count < 0 ? -1 : 0, "read", doing);
    if (count == 0) return digest.value();
    digest.add({block.data(), static_cast<std::size_t>(count)});
  }
}

void add_file(Cargo& cargo, const std::string& source, const std::string& path) {
  struct stat facts = {};
  check_errno(::stat(source.c_str(), &facts), "stat", "reading " + printable(source) + " for --ship");
  cargo.list.items.push_back(
      {Kind::file, path, facts.st_mode & 0777, static_cast<std::uint64_t>(facts.st_size),
       facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec, digest_of_file(source), ""});
  cargo.sources.push_back(source);
}

void add_directory(Cargo& cargo, const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    if (above.size() > 1) {
      cargo.list.items.push_back({Kind::directory, cargo.list.prefix + above, 0700, 0, 0, 0, ""});
      cargo.sources.push_back(above);
    }
    if (slash == std::string::npos) return;
  }
}

void add_tree(Cargo& cargo, const std::string& path, const TreeChoice& choice) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) add_directory(cargo, path.substr(0, slash));
  cargo.list.folders.push_back(cargo.list.prefix + path);
  Walk(cargo, path, choice).visit(path);
}

std::uint64_t bytes_of(const List& list) noexcept {
  std::uint64_t bytes = 0;
  for (const Item& item : list.items) bytes += item.size;
  return bytes;
}

}  // namespace fleetrun::launcher::ship
