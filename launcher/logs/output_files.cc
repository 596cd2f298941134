#include "launcher/logs/output_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::launcher {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOCTTY;

UniqueFd open_stream(OutputPlan::To to, int terminal, const std::string& path) {
  if (to == OutputPlan::To::nowhere) return UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (to == OutputPlan::To::terminal) return UniqueFd(::fcntl(terminal, F_DUPFD_CLOEXEC, 3));
  UniqueFd fd(open_own(path, kFlags, Readers::by_directory));
  if (!fd)
    throw Error(ErrorKind::host, "log " + path + " cannot be made: " + std::generic_category().message(errno),
                "choose a directory that you can write to, with --log-dir");
  return fd;
}

}  // namespace

void open_output(const ProcessSpec& process, int attempt, LogFile& log) {
  const OutputPlan& output = *process.output;
  const std::string place = output.place(attempt, process.identity.local_rank);
  if (!output.directory.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(place, failed);
    if (failed)
      throw Error(ErrorKind::host, "log directory " + place + " cannot be made: " + failed.message(),
                  "choose a directory that you can write to, with --log-dir");
  }
  const std::string out = place + "/stdout.log", err = place + "/stderr.log";
  log.out = open_stream(output.out, STDOUT_FILENO, out);
  log.err = open_stream(output.err, STDERR_FILENO, err);
  if (output.out == OutputPlan::To::file) log.out_path = out;
  if (output.err == OutputPlan::To::file) log.path = log.shown = log.err_path = err;
}

}  // namespace fleetrun::launcher
