#include "launcher/host/find_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "launcher/config/job_file_roles.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::string_view kPythonNames[] = {".py", ".pyc", ".pyw", ".pyz"};
constexpr std::chrono::seconds kAnswerTimeout{30};

enum class FileKind { missing, directory, other, plain, executable };

FileKind kind_of(const std::string& path) {
  struct stat info;
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return FileKind::missing;
  if (S_ISDIR(info.st_mode)) return FileKind::directory;
  if (!S_ISREG(info.st_mode)) return FileKind::other;
  return ::access(path.c_str(), X_OK) == 0 ? FileKind::executable : FileKind::plain;
}

ProgramRefusal refuse(int status, const std::string& what, const std::string& hint) {
  return {status, Error(ErrorKind::spawn, what, hint)};
}

ProgramRefusal refuse_pipe(const char* what, const std::string& shown) {
  return refuse(kNotStartable,
                std::string(what) + " " + shown + " is not a file: one process alone could read it",
                "write it to a file, and name that");
}

std::variant<std::string, ProgramRefusal> find_interpreter(const JobConfig& config, const Environ& environ,
                                                           const std::string& fleetrun_directory) {
  const std::string path = environ.value_or("PATH", kDefaultPath);
  if (config.python) {
    auto found = find_on_path(*config.python, path);
    if (found) return *found;
    const bool there = kind_of(*config.python) != FileKind::missing;
    return refuse(there ? kNotStartable : kNotFound,
                  "--python is " + in_quotes(*config.python) + ", which is " +
                      (there ? "not an executable file" : "not there"),
                  "name an interpreter, for example --python=/usr/bin/python3");
  }
  std::vector<std::string> candidates;
  if (const std::string* environment = environ.find("VIRTUAL_ENV"); environment && !environment->empty())
    candidates.push_back(*environment + "/bin/python");
  // In a folder of all programs it is in no environment: PATH says which Python is meant (conda, pyenv).
  const auto shared = split(kDefaultPath, ':');
  if (std::find(shared.begin(), shared.end(), fleetrun_directory) == shared.end()) {
    candidates.push_back(fleetrun_directory + "/python3");
    candidates.push_back(fleetrun_directory + "/python");
  }
  for (const std::string& candidate : candidates) {
    if (kind_of(candidate) == FileKind::executable) return absolute_path(candidate);
  }
  for (const char* name : {"python3", "python"}) {
    if (auto found = find_on_path(name, path)) return *found;
  }
  return refuse(kNotFound, "there is no python3 on PATH to run " + printable(config.script),
                "install python3, or name one with --python");
}

bool is_python_folder(const std::string& script) {
  return kind_of(script) == FileKind::directory && kind_of(script + "/__main__.py") != FileKind::missing;
}

/// A folder has to be named by its path: a bare name may be a program's.
bool is_for_python(const std::string& script) {
  return (script.find('/') != std::string::npos && is_python_folder(script)) ||
         std::any_of(std::begin(kPythonNames), std::end(kPythonNames),
                     [&](std::string_view ending) { return script.ends_with(ending); });
}

std::optional<ProgramRefusal> unreadable_script(const std::string& script) {
  if (is_python_folder(script)) return std::nullopt;
  const std::string shown = in_quotes(script);
  const FileKind kind = kind_of(script);
  if (kind == FileKind::missing)
    return refuse(kNotFound, "script " + shown + " is not there", "check the name and the current directory");
  if (kind == FileKind::directory)
    return refuse(kNotStartable, "script " + shown + " is a directory", "name the file to run");
  if (kind == FileKind::other) return refuse_pipe("script", shown);
  if (::access(script.c_str(), R_OK) != 0)
    return refuse(kNotStartable, "script " + shown + " cannot be read", "check its permissions");
  return std::nullopt;
}

bool begins_with(const std::string& path, std::string_view wanted) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(wanted.size(), 0);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file && begin == wanted;
}

/// How a file that is not executable is run: by what it is, since Python cannot run everything.
std::string how_to_run(const std::string& script, bool is_path) {
  struct stat info = {};
  if (::stat(script.c_str(), &info) == 0 && (info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0)
    return "others may run it, or its file system is mounted noexec: copy it elsewhere";
  const std::string name = shell_words({script}), path = shell_words({(is_path ? "" : "./") + script});
  if (script.ends_with(".ipynb"))
    return "a notebook has to become a script: jupyter nbconvert --to script " + name;
  if (script.ends_with(".sh")) return "a shell runs it: bash " + name;
  const std::string_view shebang = "#!", binary = "\177ELF";
  if (begins_with(script, shebang) || begins_with(script, binary))
    return "make it executable with chmod +x, and write " + path;
  return is_path ? "chmod +x it, run it with its interpreter, or in Python with --run_path"
                 : "there is one in the current directory: --run_path runs it in Python, chmod +x and " +
                       path + " by itself";
}

/// What to do about a name that no file has: it may be a shell's word, or several.
std::string how_to_name(const std::string& script, bool is_path) {
  if (script.find('=') < script.find_first_of("/ "))
    return "variables are set before fleetrun, or by env: fleetrun env " + printable(script) + " …";
  if (script.find(' ') != std::string::npos)
    return "a program and its arguments are words of their own: leave the quotes out, or use sh -c";
  return "check the name" + std::string(is_path ? "" : "; programs are looked for on PATH");
}

std::variant<std::string, ProgramRefusal> find_executable(const std::string& script,
                                                          const std::string& path) {
  if (auto found = find_on_path(script, path)) return *found;
  const std::string shown = in_quotes(script);
  const bool is_path = script.find('/') != std::string::npos;
  const FileKind here = kind_of(script);
  if (here == FileKind::directory)
    return refuse(kNotStartable, "program " + shown + " is a directory",
                  !is_path && is_python_folder(script)
                      ? "write ./" + script + " to run its __main__.py in Python"
                      : "name the file to run");
  if (script == "-" || (here == FileKind::other && is_path)) return refuse_pipe("program", shown);
  if (here == FileKind::missing || !is_path) {
    const std::string hint = here == FileKind::executable
                                 ? "there is one in the current directory: write ./" + script
                             : here == FileKind::plain ? how_to_run(script, is_path)
                                                       : how_to_name(script, is_path);
    return refuse(kNotFound, "program " + shown + " is not " + (is_path ? "there" : "on PATH"), hint);
  }
  return refuse(kNotStartable, "program " + shown + " is not executable", how_to_run(script, is_path));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string find_python(const JobConfig& config, const Environ& environ,
                        const std::string& fleetrun_directory) {
  auto found = find_interpreter(config, environ, fleetrun_directory);
  if (auto* refusal = std::get_if<ProgramRefusal>(&found)) throw Error(refusal->error);
  return std::get<std::string>(found);
}

std::string output_of(std::vector<std::string> argv, const Environ& environment) {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2", "asking " + argv[0], ErrorKind::spawn);
  UniqueFd reading(ends[0]), writing(ends[1]);
  std::vector<std::string> entries = environment.entries();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.value(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, pointers_to(argv).data(),
                                  pointers_to(entries).data());
  ::posix_spawn_file_actions_destroy(&actions);
  writing.reset();
  errno = error;
  check_errno(error == 0 ? 0 : -1, "posix_spawn", "starting " + argv[0], ErrorKind::spawn);

  std::string output;
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd answer = {reading.value(), POLLIN, 0};
    char block[4096];
    ssize_t got = -1;
    if (left.count() > 0 && ::poll(&answer, 1, static_cast<int>(left.count())) > 0)
      got = ::read(reading.value(), block, sizeof block);
    if (got <= 0) break;
    output.append(block, static_cast<std::size_t>(got));
  }
  ::kill(pid, SIGKILL);  // it has closed its output, or has had its time
  ::waitpid(pid, nullptr, 0);
  return output;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  char* cwd = ::getcwd(nullptr, 0);
  if (!cwd && errno == ENOENT)
    throw Error(ErrorKind::host, "the current directory has been removed", "change to one that is there: cd");
  check_errno(cwd ? 0 : -1, "getcwd", "finding the current directory");
  std::string absolute = std::string(cwd) + "/" + path;
  ::free(cwd);
  return absolute;
}

std::optional<std::string> find_on_path(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos)
    return kind_of(name) == FileKind::executable ? std::optional(absolute_path(name)) : std::nullopt;
  if (name.empty()) return std::nullopt;
  for (const std::string& directory : split(path, ':')) {
    const std::string candidate = (directory.empty() ? std::string(".") : directory) + "/" + name;
    if (kind_of(candidate) == FileKind::executable) return absolute_path(candidate);
  }
  return std::nullopt;
}

std::variant<Program, ProgramRefusal> find_program(const JobConfig& config, const Environ& environ,
                                                   const std::string& fleetrun_directory) {
  const std::string& script = config.script;
  if (script.empty())
    return refuse(kNotFound, "the script's name is empty", "name a script, for example train.py");
  if (script == kRunCheck && kind_of(script) == FileKind::missing)
    return Program{
        fleetrun_directory + "/fleetrun", {std::string("fleetrun"), std::string(kRunCheckProcess)}, ""};
  const bool pyxes = script.ends_with(".pyxes");
  const bool by_python = config.script_kind == ScriptKind::module ||
                         config.script_kind == ScriptKind::python ||
                         (config.script_kind == ScriptKind::by_name && (pyxes || is_for_python(script)));
  if (by_python && config.script_kind != ScriptKind::module) {
    if (auto refusal = unreadable_script(script)) return std::move(*refusal);
  }
  Program program;
  if (by_python || config.compat_paddle) {
    auto interpreter = find_interpreter(config, environ, fleetrun_directory);
    if (auto* refusal = std::get_if<ProgramRefusal>(&interpreter)) return std::move(*refusal);
    program.interpreter = std::get<std::string>(interpreter);
  }
  if (by_python) {
    program.path = program.interpreter;
    program.argv = {program.interpreter};
    if (!pyxes) program.argv.push_back("-u");
    if (config.script_kind == ScriptKind::module)
      program.argv.push_back("-m");
    else
      program.file = script;
    program.argv.push_back(script);
  } else {
    std::string path = environ.value_or("PATH", kDefaultPath);
    // torchrun, pytest: the one that was installed for the chosen interpreter.
    const auto python = config.python ? find_on_path(*config.python, path) : std::nullopt;
    if (python) path.insert(0, directory_of(*python) + ":");
    auto found = find_executable(script, path);
    if (auto* refusal = std::get_if<ProgramRefusal>(&found)) return std::move(*refusal);
    program.path = program.file = std::get<std::string>(found);
    program.argv = {script};
  }
  program.argv.insert(program.argv.end(), config.script_args.begin(), config.script_args.end());
  return program;
}

std::variant<std::vector<Program>, ProgramRefusal> find_programs(const JobConfig& config,
                                                                 const Environ& environ,
                                                                 const std::string& fleetrun_directory) {
  std::vector<JobConfig> specs(config.file ? config.file->roles.size() : 1, config);
  for (std::size_t i = 0; config.file && i < specs.size(); ++i) {
    const JobFileRole& role = config.file->roles[i];
    specs[i].script = role.cwd.empty() ? role.script : absolute_path(script_path(role));
    if (role.is_command && role.script.find('/') == std::string::npos) specs[i].script = role.script;
    specs[i].script_args = role.args;
    specs[i].script_kind = role.is_command ? ScriptKind::direct : ScriptKind::by_name;
  }
  std::vector<Program> programs;
  for (const JobConfig& spec : specs) {
    auto found = find_program(spec, environ, fleetrun_directory);
    if (auto* refusal = std::get_if<ProgramRefusal>(&found)) return std::move(*refusal);
    programs.push_back(std::move(std::get<Program>(found)));
  }
  return programs;
}

std::string find_compat_directory(const std::string& interpreter, const std::string& script_directory,
                                  const Environ& environ) {
  // The script will see its own directory first and not the current one, so the question is asked with that
  // path.
  constexpr const char* kQuestion =
      "import sys; sys.path[0:1] = [sys.argv[1]]\n"
      "from importlib.util import find_spec\n"
      "spec = find_spec('fleetrun')\n"
      "places = list(spec.submodule_search_locations or []) if spec else []\n"
      "sys.stdout.write(places[0] if places else spec.origin or '' if spec else '')";
  const std::string package = output_of({interpreter, "-c", kQuestion, script_directory}, environ);
  struct stat info;
  const std::string directory = package + "/_compat";
  if (!package.empty() && ::stat((directory + "/paddle").c_str(), &info) == 0) return directory;
  const std::string what = "--compat=paddle needs the Python package fleetrun, and " + interpreter;
  if (!package.empty())
    throw Error(ErrorKind::config, what + " finds " + package + ", which stands in its way",
                "rename it, or take its folder off PYTHONPATH and out of the script's folder");
  throw Error(ErrorKind::config, what + " cannot import it",
              "install it for that interpreter (pip install .), or name another with --python");
}

}  // namespace fleetrun::launcher
