#include "ps/saving/remote_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "dataset/pipes/byte_source.h"
#include "dataset/pipes/pipe_command.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::ps {
namespace {

[[noreturn]] void fail_without_command(const std::string& name, const std::string& flag,
                                       const std::string& duty) {
  throw Error(ErrorKind::config,
              printable(name) + " is not a directory of this host, and there is no command that " + duty,
              "start the job with " + flag + "=COMMAND (fleetrun-ps(7))");
}

// What the command prints, to `take`.
void read_all(dataset::ByteSource& source, const std::function<void(std::span<const char>)>& take) {
  std::array<char, 1 << 16> room;
  while (const std::size_t bytes = source.read(room)) take(std::span(room).first(bytes));
}

}  // namespace

CopyCommands copy_commands_of(const Environ& environ) {
  return {environ.value_or("FLEETRUN_PS_UPLOAD_CMD", ""), environ.value_or("FLEETRUN_PS_DOWNLOAD_CMD", "")};
}

void check_can_upload(const std::string& name, const CopyCommands& commands) {
  if (commands.upload.empty()) fail_without_command(name, "--ps_upload_cmd", "copies files to it");
}

std::uint64_t next_remote_save() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

RemoteDirectory::RemoteDirectory(std::string name, CopyCommands commands)
    : name_(std::move(name)), commands_(std::move(commands)) {
  while (name_.ends_with('/')) name_.pop_back();
  here_ = Environ::of_process().value_or("TMPDIR", "/tmp") + "/fleetrun-save-XXXXXX";
  if (!::mkdtemp(here_.data())) check_errno(-1, "make the directory", here_);
}

RemoteDirectory::~RemoteDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(here_, ignored);
}

void RemoteDirectory::upload(const std::string& file) const {
  check_can_upload(name_, commands_);
  const std::string from = here_ + "/" + file;
  UniqueFd input(check_errno(::open(from.c_str(), O_RDONLY | O_CLOEXEC), "open", from));
  const std::string to = name_ + "/" + file;
  dataset::PipeCommandOptions options;
  options.file = to;
  options.stages = {
      {dataset::PipeStage::Kind::upload, dataset::argv_with_name(commands_.upload, to), commands_.upload}};
  options.environment = Environ::of_process().entries();
  dataset::PipeCommand command(std::move(options), std::move(input));
  read_all(command, [](std::span<const char>) {});
}

void RemoteDirectory::download(const std::string& file) const {
  if (commands_.download.empty()) fail_without_command(name_, "--ps_download_cmd", "copies files from it");
  const std::string to = here_ + "/" + file;
  dataset::ByteSourceOptions options;
  options.file = name_ + "/" + file;
  options.pipe.remote.download_command = commands_.download;
  options.environment = Environ::of_process().entries();
  const auto source = dataset::open_byte_source(options);
  const UniqueFd out(check_errno(open_own(to, O_WRONLY | O_CREAT | O_EXCL, Readers::owner), "open", to));
  read_all(*source, [&](std::span<const char> bytes) {
    check_errno(write_all(out.value(), {bytes.data(), bytes.size()}) ? 0 : -1, "write", to);
  });
}

}  // namespace fleetrun::ps
