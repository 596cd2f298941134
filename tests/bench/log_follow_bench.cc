// What following logs costs: some processes write lines to files while a view shows them all, on /dev/null or
// in a file. Prints what reached the reader per second, from the first write until everything was shown, and
// checks that nothing was lost.
//
//   log_follow_bench [MEGABYTES]      of all writers together; default 2000
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "launcher/logs/log_view.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace asio = boost::asio;

namespace {

constexpr std::size_t kLine = 100;

struct Row {
  int writers;
  bool raw;
  bool to_file;
};

[[noreturn]] void write_lines(const std::string& path, std::size_t bytes, int go) {
  char started = 0;
  (void)!::read(go, &started, 1);
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  std::string block;
  while (block.size() < 80 * kLine) block.append(kLine - 1, 'x').append(1, '\n');
  for (std::size_t done = 0; done < bytes; done += block.size()) {
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) ::_exit(1);
  }
  ::_exit(0);
}

/// Bytes that have to be shown of `bytes` that were written.
std::size_t shown_bytes(const Row& row, std::size_t bytes) {
  const std::size_t prefix = row.raw ? 0 : std::string("trainer 0 | ").size();
  return bytes + bytes / kLine * prefix;
}

bool measure(const Row& row, std::size_t bytes_of_one) {
  const tests::TempDir directory;
  const std::string out_path = row.to_file ? directory.file("out") : "/dev/null";
  const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  int go[2];
  if (out < 0 || ::pipe(go) != 0) return false;
  std::vector<ViewedProcess> viewed;
  std::vector<pid_t> writers;
  for (int i = 0; i < row.writers; ++i) {
    const std::string path = directory.write("log." + std::to_string(i), "");
    viewed.push_back({"trainer " + std::to_string(i), Showing::always});
    writers.push_back(::fork());
    if (writers.back() == 0) {
      ::close(go[1]);
      write_lines(path, bytes_of_one, go[0]);
    }
  }
  asio::io_context loop{1};
  const auto view = view_logs(loop, viewed, {.output = out, .raw = row.raw, .colour = false});
  for (int i = 0; i < row.writers; ++i)
    view->attach(static_cast<std::size_t>(i), directory.file("log." + std::to_string(i)), 0);
  asio::steady_timer reaper(loop);
  std::size_t living = writers.size();
  std::function<void()> reap = [&] {
    reaper.expires_after(std::chrono::milliseconds(1));
    reaper.async_wait([&](const auto&) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) --living;
      if (living > 0)
        reap();
      else
        view->drain([&] { loop.stop(); });
    });
  };
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_SELF, &before);
  const auto start = std::chrono::steady_clock::now();
  ::close(go[1]);
  reap();
  loop.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ::getrusage(RUSAGE_SELF, &after);
  const std::size_t bytes = bytes_of_one * static_cast<std::size_t>(row.writers);
  struct stat info = {};
  ::fstat(out, &info);
  const bool whole = !row.to_file || static_cast<std::size_t>(info.st_size) == shown_bytes(row, bytes);
  const auto cpu = [](const timeval& a, const timeval& b) {
    return static_cast<double>(b.tv_sec - a.tv_sec) + static_cast<double>(b.tv_usec - a.tv_usec) / 1e6;
  };
  std::printf("%2d writers, %s, to %-9s  %6.0f MB/s  view's CPU %.2f s of %.2f s, peak memory %ld KiB%s\n",
              row.writers, row.raw ? "bytes" : "lines", row.to_file ? "a file" : "/dev/null",
              static_cast<double>(bytes) / seconds / 1e6,
              cpu(before.ru_utime, after.ru_utime) + cpu(before.ru_stime, after.ru_stime), seconds,
              after.ru_maxrss, whole ? "" : "  BYTES LOST");
  ::close(out);
  ::close(go[0]);
  return whole;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2000;
  bool whole = true;
  for (const Row& row : {Row{1, true, false}, Row{1, true, true}, Row{1, false, false}, Row{4, false, false},
                         Row{8, false, false}, Row{8, false, true}}) {
    const std::size_t block = 80 * kLine;
    const std::size_t each = megabytes * 1'000'000 / static_cast<std::size_t>(row.writers) / block * block;
    for (int round = 0; round < 3; ++round) whole = measure(row, each) && whole;
  }
  return whole ? 0 : 1;
}
