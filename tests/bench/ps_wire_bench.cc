// What a batch of 26,000 keys, rows of 10 floats, costs between a trainer and a server in processes of their
// own, by each transport: how long a pull and a push take, and how many rows a second and a core go through,
// both processes' processor time counted.
//
//   ps_wire_bench [batches]     prints a table, and the same as JSON lines with --json
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"

namespace {

using namespace fleetrun::ps;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWidth = 10;
constexpr std::size_t kKeys = 26000;
constexpr std::uint64_t kRows = 1000000;

std::vector<TableConfig> tables() {
  TableConfig config;
  config.name = "emb";
  config.kind = TableConfig::Kind::sparse;
  config.width = kWidth;
  config.rule.kind = UpdateRule::Kind::adagrad;
  config.rule.initial_accumulator = 0.1f;
  config.initializer = {Initializer::Kind::uniform, -0.1, 0.1, 1};
  return {config};
}

struct ServerProcess {
  pid_t pid = -1;
  std::string endpoint;
};

// Before this process has threads.
ServerProcess start_server() {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  const pid_t pid = ::fork();
  if (pid == 0) {
    RpcServer server({0, 1, 1, Mode::async, tables()}, "127.0.0.1:0");
    const std::string& endpoint = server.endpoint();
    static_cast<void>(!::write(ends[1], endpoint.data(), endpoint.size()));
    ::close(ends[1]);
    server.wait();
    std::exit(0);
  }
  ::close(ends[1]);
  char text[64];
  const ssize_t size = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  if (size <= 0) std::exit(1);
  return {pid, std::string(text, static_cast<std::size_t>(size))};
}

double seconds_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

struct Latency {
  std::vector<double> seconds;
  void time(const std::function<void()>& action) {
    const auto before = Clock::now();
    action();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  double at(double part) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[std::min(seconds.size() - 1,
                            static_cast<std::size_t>(part * static_cast<double>(seconds.size())))];
  }
};

std::vector<std::vector<std::uint64_t>> make_batches() {
  std::mt19937_64 random(1);
  std::vector<std::vector<std::uint64_t>> batches(40, std::vector<std::uint64_t>(kKeys));
  for (auto& batch : batches)
    for (std::uint64_t& key : batch) key = random() % kRows;
  return batches;
}

void bench(Transport transport, const char* name, std::size_t count, bool as_json) {
  const ServerProcess server = start_server();
  Latency pulls, pushes, single;
  double own = 0;
  const double children_before = seconds_of(RUSAGE_CHILDREN);
  {
    ConnectOptions options;
    options.transport = transport;
    const auto client = connect({server.endpoint}, {0, 1, Mode::async, tables()}, options);
    const auto batches = make_batches();
    std::vector<float> rows(kKeys * kWidth), gradients(kKeys * kWidth, 0.01f);
    std::vector<std::uint64_t> all(100000);
    std::vector<float> first(all.size() * kWidth);
    for (std::uint64_t from = 0; from < kRows; from += all.size()) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = from + i;
      client->pull({.sparse = {{0, all, first}}, .dense = {}});
    }
    const double before = seconds_of(RUSAGE_SELF);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& keys = batches[i % batches.size()];
      pulls.time([&] { client->pull({.sparse = {{0, keys, rows}}, .dense = {}}); });
      pushes.time([&] { client->push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {}}); });
    }
    own = seconds_of(RUSAGE_SELF) - before;
    for (std::size_t i = 0; i < 2000; ++i) {
      single.time([&] {
        client->pull(
            {.sparse = {{0, std::span(batches[0]).first(1), std::span(rows).first(kWidth)}}, .dense = {}});
      });
    }
    client->goodbye();
  }
  ::waitpid(server.pid, nullptr, 0);
  const double theirs = seconds_of(RUSAGE_CHILDREN) - children_before;
  const double rows_per_core = static_cast<double>(count * kKeys) / (own + theirs);
  if (as_json) {
    std::printf(
        "{\"transport\": \"%s\", \"pull_p50_ms\": %.3f, \"pull_p99_ms\": %.3f, \"push_p50_ms\": %.3f, "
        "\"push_p99_ms\": %.3f, \"one_row_p50_us\": %.1f, \"one_row_p99_us\": %.1f, "
        "\"rows_per_core_second\": %.0f}\n",
        name, pulls.at(0.5) * 1e3, pulls.at(0.99) * 1e3, pushes.at(0.5) * 1e3, pushes.at(0.99) * 1e3,
        single.at(0.5) * 1e6, single.at(0.99) * 1e6, rows_per_core);
  } else {
    std::printf("%-5s %8.3f %8.3f   %8.3f %8.3f   %8.1f %8.1f   %8.2f M\n", name, pulls.at(0.5) * 1e3,
                pulls.at(0.99) * 1e3, pushes.at(0.5) * 1e3, pushes.at(0.99) * 1e3, single.at(0.5) * 1e6,
                single.at(0.99) * 1e6, rows_per_core / 1e6);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 400;
  bool as_json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json")
      as_json = true;
    else
      count = std::strtoul(argv[i], nullptr, 10);
  }
  if (!as_json) {
    std::printf("26,000 keys  pull ms            push ms            one row µs          rows pulled and\n");
    std::printf("         p50      p99        p50      p99        p50      p99   pushed/s/core\n");
  }
  // Each in a process of its own: gRPC does not survive a fork.
  const std::pair<Transport, const char*> all[] = {
      {Transport::shared_memory, "shm"}, {Transport::unix_socket, "unix"}, {Transport::tcp, "tcp"}};
  std::fflush(stdout);
  for (const auto& [transport, name] : all) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bench(transport, name, count, as_json);
      std::exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) return 1;
  }
}
