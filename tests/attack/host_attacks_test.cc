// Another user of the host, and who looks at what is left behind: T9, T15, T22, T23.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/own_file.h"
#include "runtime/base/same_user.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/secure/secret.h"
#include "tests/attack/attack.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using fleetrun::tests::goes_through;
using fleetrun::tests::stopped_only_by;
using fleetrun::tests::TempDir;

namespace {

constexpr uid_t kNobody = 65534;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

UniqueFd open_log(const std::string& path) {
  return UniqueFd(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
}

/// Whether `action`, run by somebody else's process, returns true. Only root can try.
template <class Action>
bool as_another_user(Action action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0 && action() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Whether a core dump has the page that `place` is in.
bool is_dumped(const void* place) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_here =
          begin <= reinterpret_cast<unsigned long>(place) && reinterpret_cast<unsigned long>(place) < end;
    if (is_here && line.starts_with("VmFlags:")) return line.find(" dd") == std::string::npos;
  }
  FAIL("no flags of the page");
  return false;
}

}  // namespace

TEST_CASE("T9: a link that somebody planted leads a log to a file of the user's") {
  stopped_only_by("planted links", [] {
    const TempDir folder;
    put(folder.file("precious"), "keep me");
    std::filesystem::create_symlink("precious", folder.file("worker.0.log"));
    open_log(folder.file("worker.0.log"));
    return text_of(folder.file("precious")).empty();
  });
}

TEST_CASE("T9: a log is written into a file that another user made, and reads" *
          doctest::skip(::geteuid() != 0)) {
  stopped_only_by("files of others", [] {
    const TempDir folder;
    REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
    const std::string log = folder.file("worker.0.log");
    put(log, "");
    REQUIRE(::chown(log.c_str(), kNobody - 1, kNobody - 1) == 0);
    REQUIRE(::chmod(log.c_str(), 0666) == 0);
    return as_another_user([&] { return bool(open_log(log)); });
  });
}

TEST_CASE("T9: another user reads a log" * doctest::skip(::geteuid() != 0)) {
  stopped_only_by("files for the owner", [] {
    const TempDir folder;
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    const std::string log = folder.file("worker.0.log");
    const UniqueFd file = open_log(log);
    REQUIRE(file);
    return as_another_user([&] { return ::open(log.c_str(), O_RDONLY) >= 0; });
  });
}

TEST_CASE("T15: another user's process is taken for one of the job's" * doctest::skip(::geteuid() != 0)) {
  stopped_only_by("the other end's user", [] {
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;  // and no name: the kernel gives it an abstract one
    REQUIRE(::bind(listener.value(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) == 0);
    REQUIRE(::listen(listener.value(), 1) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(listener.value(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    REQUIRE(as_another_user([&] {
      const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      return ::connect(socket.value(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
    }));
    const UniqueFd connection(::accept(listener.value(), nullptr, nullptr));
    return is_same_user(connection.value());
  });
}

TEST_CASE("T15: a secret that others can read is used") {
  stopped_only_by("secrets of one reader", [] {
    const TempDir folder;
    const std::string path = folder.file("secret");
    write_secret_file(path, Secret::random());
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    return goes_through([&] { read_secret_file(path); });
  });
}

TEST_CASE("T22: the secret is in a core dump") {
  stopped_only_by("secrets not dumped", [] { return is_dumped(Secret::random().bytes().data()); });
}

TEST_CASE("T23: what a worker writes sets the terminal's clipboard") {
  stopped_only_by("filtered terminals", [] {
    const std::string shown = terminal_text("\x1b]52;c;cm0gLXJmIH4=\x07 done\n");
    return shown.find('\x07') != std::string::npos || shown.find("\x1b]") != std::string::npos;
  });
}

TEST_CASE("T23: a worker writes a line that looks like fleetrun's own") {
  stopped_only_by("marked lines",
                  [] { return terminal_text("LAUNCH INFO job done\n", "worker.0: ").starts_with("LAUNCH"); });
}
