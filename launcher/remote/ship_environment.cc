#include "launcher/remote/ship_environment.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "launcher/host/find_program.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

/// Prefix, base prefix, the base's interpreter, its standard library, and what else is on the path of
/// modules.
constexpr const char* kPythonQuestion =
    "import os, sys\n"
    "real = os.path.realpath\n"
    "own = [sys.prefix, sys.base_prefix, real(getattr(sys, '_base_executable', None) or sys.executable),\n"
    "       real(os.path.dirname(os.__file__))]\n"
    "inside = [sys.prefix + os.sep, own[3], own[1] + '/lib/python']\n"
    "more = [p for p in sys.path if os.path.exists(p) and not any(p.startswith(i) for i in inside)]\n"
    "sys.stdout.write('\\n'.join(own + [real(p) for p in more]) + '\\n.')";

/// Parts of the C library, which every host has its own of, and of the kernel.
constexpr std::string_view kOfEveryHost[] = {"libc.so",    "libm.so",    "libpthread.so", "libdl.so",
                                             "librt.so",   "libutil.so", "libresolv.so",  "libanl.so",
                                             "libnss_",    "libnsl.so",  "ld-linux",      "linux-vdso",
                                             "libmvec.so", "libcuda.so", "libnvidia-"};
constexpr std::size_t kMostAtOnce = 500;

std::string loader() {
  const auto base = reinterpret_cast<const void*>(::getauxval(AT_BASE));
  Dl_info info = {};
  return base && ::dladdr(base, &info) != 0 && info.dli_fname ? info.dli_fname
                                                              : "/lib64/ld-linux-x86-64.so.2";
}

bool is_system(const std::string& prefix) {
  return prefix == "/usr" || prefix == "/usr/local" || prefix == "/";
}

bool is_library(const std::string& path) {
  return path.ends_with(".so") || path.find(".so.") != std::string::npos;
}

/// What the files of the cargo from number `first` on are linked against, and does not travel with them.
void add_libraries(ship::Cargo& cargo, std::size_t first, const std::string& interpreter,
                   const Environ& environ) {
  std::vector<std::string> files = {interpreter};
  std::set<std::string> travelling;
  for (std::size_t i = first; i < cargo.list.items.size(); ++i) {
    travelling.insert(cargo.sources[i]);
    if (cargo.list.items[i].kind == ship::Kind::file && is_library(cargo.sources[i]))
      files.push_back(cargo.sources[i]);
  }
  std::set<std::string> added;
  for (std::size_t begin = 0; begin < files.size(); begin += kMostAtOnce) {
    const std::size_t end = std::min(begin + kMostAtOnce, files.size());
    std::vector<std::string> argv = {"/bin/sh", "-c", "l=$1; shift; for f; do \"$l\" --list \"$f\"; done",
                                     "sh", loader()};
    argv.insert(argv.end(), files.begin() + static_cast<std::ptrdiff_t>(begin),
                files.begin() + static_cast<std::ptrdiff_t>(end));
    for (const std::string& path : paths_of_libraries(output_of(argv, environ))) {
      const std::string name = path.substr(path.rfind('/') + 1);
      if (travelling.contains(path) || !added.insert(name).second) continue;
      add_file(cargo, path, cargo.list.prefix + std::string(kLibraryFolder) + "/" + name);
    }
  }
}

}  // namespace

std::vector<std::string> paths_of_libraries(std::string_view text) {
  std::vector<std::string> paths;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t arrow = line.find(" => /"), end = line.rfind(" (0x");
    if (arrow == std::string::npos || end == std::string::npos || end < arrow) continue;
    std::string path = line.substr(arrow + 4, end - arrow - 4);
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool everywhere = std::any_of(std::begin(kOfEveryHost), std::end(kOfEveryHost),
                                        [&](std::string_view one) { return name.starts_with(one); });
    if (!everywhere) paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<std::string> missing_libraries(const ship::List& list) {
  const std::string folder = list.prefix + std::string(kLibraryFolder) + "/";
  std::vector<std::string> names;
  for (const ship::Item& item : list.items) {
    if (!item.path.starts_with(folder)) continue;
    std::string name = item.path.substr(folder.size());
    if (!::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) names.push_back(std::move(name));
  }
  return names;
}

std::string add_environment(ship::Cargo& cargo, const JobConfig& config, const Environ& environ,
                            const std::string& fleetrun_directory) {
  const std::string interpreter = find_python(config, environ, fleetrun_directory);
  const std::vector<std::string> facts =
      split(output_of({interpreter, "-I", "-c", kPythonQuestion}, environ), '\n');
  if (facts.size() < 5)
    throw Error(ErrorKind::config, interpreter + " does not say where its environment is",
                "name a Python of version 3.8 or later with --python");
  const std::string &prefix = facts[0], &base = facts[1], &program = facts[2], &library = facts[3];
  if (prefix == base && is_system(prefix))
    throw Error(
        ErrorKind::config,
        "--ship=venv, and " + interpreter + " is the system's Python: there is no virtual environment",
        "activate one, or name its interpreter: --python=venv/bin/python");
  const std::size_t first = cargo.list.items.size();
  ship::TreeChoice whole;
  whole.environment = true;
  if (prefix != base) {
    ship::TreeChoice standard = whole;
    standard.left_out = {"test",    "idlelib",       "turtledemo",    "ensurepip",
                         "lib2to3", "dist-packages", "site-packages", "config-*"};
    add_directory(cargo, directory_of(program));
    cargo.list.folders.push_back(cargo.list.prefix + program);
    add_file(cargo, program, cargo.list.prefix + program);
    add_tree(cargo, library, standard);
    cargo.list.python_home = directory_of(program);
  }
  add_tree(cargo, prefix, whole);
  for (std::size_t i = 4; i + 1 < facts.size(); ++i) {
    add_tree(cargo, facts[i], {});
    cargo.list.module_paths.push_back(facts[i]);
  }
  const std::string folder = cargo.list.prefix + std::string(kLibraryFolder);
  cargo.list.items.push_back({ship::Kind::directory, folder, 0700, 0, 0, 0, ""});
  cargo.sources.push_back("/");
  cargo.list.folders.push_back(folder);
  add_libraries(cargo, first, program, environ);
  return interpreter;
}

}  // namespace fleetrun::launcher::remote
