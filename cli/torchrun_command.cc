#include "cli/torchrun_command.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/launch.h"
#include "launcher/cluster/coordinator.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/torchrun_options.h"
#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFailed = 1, kWrongUsage = 2;
constexpr std::string_view kNowhere = "/dev/null";

/// A directory of its own below `parent`, with a name that begins with `prefix`.
std::string make_directory(const fs::path& parent, const std::string& prefix) {
  std::string path = (parent / (prefix + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    throw Error(ErrorKind::host, "log directory " + path + " cannot be made: " + std::strerror(errno),
                "choose a directory that you can write to, with --log-dir");
  return path;
}

/// 32 hexadecimal digits in a UUID's groups.
std::string draw_run_id() {
  std::string id = launcher::draw_id();
  for (const std::size_t before : {20, 16, 12, 8}) id.insert(before, 1, '-');
  return id;
}

/// The directories of the run. One that was not asked for is removed when all went well.
class RunDirectory {
 public:
  RunDirectory(launcher::TorchrunSettings& settings, const std::string& run_id, const Environ& environment) {
    const bool nowhere = settings.log_dir == kNowhere;
    if (nowhere || settings.log_dir.empty()) {
      temporary_ = make_directory(environment.value_or("TMPDIR", "/tmp"), "torchelastic_");
      path_ = temporary_;
    } else {
      path_ = launcher::absolute_path(settings.log_dir);
      std::error_code failed;
      if (fs::is_regular_file(path_, failed))
        throw Error(ErrorKind::host, "log_dir: " + settings.log_dir + " is a file");
      fs::create_directories(path_, failed);
    }
    std::string prefix = run_id + "_";
    std::replace(prefix.begin(), prefix.end(), '/', '_');
    path_ = make_directory(path_, prefix);
    if (!nowhere) settings.directory = path_;
  }

  const std::string& path() const noexcept { return path_; }

  void leave(bool all_well) const {
    std::error_code ignored;
    if (all_well && !temporary_.empty()) fs::remove_all(temporary_, ignored);
  }

 private:
  std::string path_, temporary_;
};

/// Of our own variables those that are about hosts' secrets; torchrun knows no others.
Environ own_variables(const Environ& environment) {
  Environ own;
  if (const std::string* file = environment.find("FLEETRUN_SECRET_FILE"))
    own.set("FLEETRUN_SECRET_FILE", *file);
  return own;
}

int run(const std::vector<std::string>& arguments, const Environ& environment,
        const std::optional<std::string>& python) {
  launcher::TorchrunCommand command = launcher::read_torchrun_command(arguments, environment);
  if (command.help) return print(launcher::torchrun_help());
  if (command.run_id.empty()) command.run_id = draw_run_id();
  auto& values = command.options.values;
  values["rdzv_id"] = command.run_id;
  if (const std::string* chosen = environment.find("PYTHON_EXEC"))
    values["python"] = *chosen;
  else if (python)
    values["python"] = *python;
  launcher::JobConfig config = launcher::make_job_config(command.options, own_variables(environment));
  const RunDirectory directory(command.settings, command.run_id, environment);
  config.log_dir = directory.path() + "/.fleetrun";
  config.torchrun = std::move(command.settings);
  const int status = launch(config, environment);
  directory.leave(status == 0);
  return status == 0 ? 0 : kFailed;
}

int guarded_run(const std::vector<std::string>& arguments, const Environ& environment,
                const std::optional<std::string>& python) {
  try {
    return run(arguments, environment, python);
  } catch (const launcher::TorchrunUsage& error) {
    complain("usage: torchrun [FLAGS] SCRIPT [ARGUMENTS]\ntorchrun: error: " + std::string(error.what()) +
             "\n");
    return kWrongUsage;
  } catch (const Error& error) {
    complain(render(error, "torchrun") + "\n");
    return kFailed;
  }
}

}  // namespace

int run_torchrun_command(const std::vector<std::string>& arguments, const Environ& environment) {
  return guarded_run(arguments, environment, std::nullopt);
}

int run_as_torchrun(const std::string& link, const std::vector<std::string>& arguments,
                    const Environ& environment) {
  std::optional<std::string> python;
  if (const auto path = launcher::find_on_path(link, environment.value_or("PATH", "")))
    python = launcher::find_on_path(launcher::directory_of(*path) + "/python", "");
  return guarded_run(arguments, environment, python);
}

bool is_torchrun(const std::string& program) noexcept {
  return std::string_view(program).substr(program.rfind('/') + 1) == "torchrun";
}

}  // namespace fleetrun::cli
