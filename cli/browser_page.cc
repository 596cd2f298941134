#include "cli/browser_page.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "launcher/host/find_program.h"
#include "launcher/host/helper_child.h"
#include "launcher/host/run_directory.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::cli {
namespace {

constexpr const char* kByHand = "open the printed address by hand";

/// $BROWSER is a list, as Python's webbrowser and xdg-open read it; without a desktop there is nobody who
/// could see a window.
std::string find_browser(const Environ& environment) {
  const std::string path = environment.value_or("PATH", "");
  std::vector<std::string> candidates = split(environment.value_or("BROWSER", ""), ':');
  for (const char* desktop : {"DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"}) {
    if (!environment.has(desktop)) continue;
    candidates.insert(candidates.end(), {"xdg-open", "wslview"});
    break;
  }
  for (const std::string& candidate : candidates) {
    const auto found = candidate.empty() ? std::nullopt : launcher::find_on_path(candidate, path);
    if (found) return *found;
  }
  throw Error(ErrorKind::host,
              "no browser is found here: neither $BROWSER names a program, nor is there a desktop", kByHand);
}

/// Not waited for: it may be the browser itself.
void start(const std::string& program, const std::string& file, const Environ& environment) {
  const std::vector<std::string> words{program, "file://" + file}, entries = environment.entries();
  const pid_t first = ::fork();
  if (first < 0)
    throw Error(ErrorKind::spawn, program + " cannot be started: " + std::strerror(errno), kByHand);
  if (first != 0) {
    while (::waitpid(first, nullptr, 0) < 0 && errno == EINTR) continue;
    return;
  }
  if (::fork() != 0) ::_exit(0);
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  ::execve(program.c_str(), launcher::pointers(words).data(), launcher::pointers(entries).data());
  ::_exit(127);
}

}  // namespace

BrowserPage::BrowserPage(const std::string& url, const Environ& environment) {
  const std::string browser = find_browser(environment);
  std::string why;
  const auto folder =
      launcher::first_private_directory(launcher::run_directories(environment, ::geteuid()), why);
  if (!folder) throw Error(ErrorKind::host, "the browser's page cannot be written: " + why, kByHand);
  path_ = folder->path + "/ui-" + std::to_string(::getpid()) + ".html";
  ::unlink(path_.c_str());
  const UniqueFd file(open_own(path_, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
  const std::string text =
      "<!doctype html><meta name=referrer content=no-referrer>"
      "<meta http-equiv=refresh content=\"0;url=" +
      url + "\">\n";
  if (!file || !write_all(file.value(), text))
    throw Error(ErrorKind::host, printable(path_) + " cannot be written: " + std::strerror(errno), kByHand);
  start(browser, path_, environment);
}

BrowserPage::~BrowserPage() {
  ::unlink(path_.c_str());
}

}  // namespace fleetrun::cli
