// What sealing costs on a network: a server and a trainer, or two ranks, each a process of its own that may
// be in a network namespace of its own. tests/bench/sealed_bench.py starts them, on a link of a known rate.
//
//   sealed_bench server ENDPOINT SECRET             prints its endpoint, serves one trainer
//   sealed_bench trainer ENDPOINT SECRET SECONDS    pushes and pulls 32 MB each until the time is over
//   sealed_bench rank N ENDPOINT SECRET STEPS       one of two: averages 32 MB so many times
//
// SECRET is 64 hexadecimal digits, or "-" for --insecure. Each prints a line of JSON: bytes that were sent
// and received, seconds, and processor seconds.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "collective/groups/world.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "runtime/base/hex.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kFloats = std::size_t{8} << 20;

std::vector<ps::TableConfig> tables() {
  ps::TableConfig config;
  config.name = "weights";
  config.kind = ps::TableConfig::Kind::dense;
  config.width = kFloats;
  config.rule.kind = ps::UpdateRule::Kind::sum;
  return {config};
}

Access access_of(const std::string& digits) {
  if (digits == "-") return {};
  return {Secret::from_bytes(from_hex(digits).value_or("")), "the command line"};
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

/// Calls `step`, which moves `bytes`, for so long.
template <class Step>
void measure(double seconds, std::size_t bytes, Step step) {
  step();  // warm
  const double processor = processor_seconds();
  const auto begin = Clock::now();
  std::size_t steps = 0;
  double passed = 0;
  for (; passed < seconds; ++steps) {
    step();
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::printf("{\"bytes\": %zu, \"seconds\": %.3f, \"processor\": %.3f}\n", steps * bytes, passed,
              processor_seconds() - processor);
}

void serve(const std::string& endpoint, const Access& access) {
  ps::RpcServer server({0, 1, 1, ps::Mode::async, tables()}, endpoint, {.access = access});
  std::printf("%s\n", server.endpoint().c_str());
  std::fflush(stdout);
  server.wait();
  std::printf("{\"processor\": %.3f}\n", processor_seconds());
}

void train(const std::string& endpoint, const Access& access, double seconds) {
  const auto client = ps::connect({endpoint}, {0, 1, ps::Mode::async, tables()},
                                  {.access = access, .transport = ps::Transport::tcp});
  std::vector<float> values(kFloats, 1.0f), gradients(kFloats, 0.5f);
  client->set_dense(0, values);
  measure(seconds, 2 * kFloats * sizeof(float), [&] {
    client->push({.thread = 0, .sparse = {}, .dense = {{0, gradients}}});
    client->pull({.sparse = {}, .dense = {{0, values}}});
  });
  client->goodbye();
}

/// A fixed number of steps in both ranks: neither can end before the other.
void reduce(int rank, const std::string& endpoint, const Access& access, std::size_t steps) {
  collective::WorldOptions options;
  options.rank = rank;
  options.size = 2;
  options.store = endpoint;
  options.access = access;
  options.host_key = "host " + std::to_string(rank);
  const auto world = collective::World::join(options);
  const auto all = world->make_communicator("all");
  std::vector<float> values(kFloats, 1.0f);
  const auto step = [&] {
    all_reduce(*all, collective::Buffer{values.data(), values.size(), collective::DataType::float32},
               collective::Operation::avg);
  };
  step();
  const double processor = processor_seconds();
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < steps; ++i) step();
  std::printf("{\"bytes\": %zu, \"seconds\": %.3f, \"processor\": %.3f}\n",
              2 * steps * kFloats * sizeof(float),
              std::chrono::duration<double>(Clock::now() - begin).count(), processor_seconds() - processor);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "server") return serve(words[1], access_of(words[2])), 0;
  if (words.size() == 4 && words[0] == "trainer")
    return train(words[1], access_of(words[2]), std::strtod(words[3].c_str(), nullptr)), 0;
  if (words.size() == 5 && words[0] == "rank")
    return reduce(std::stoi(words[1]), words[2], access_of(words[3]), std::stoul(words[4])), 0;
  std::fprintf(stderr,
               "usage: sealed_bench server ENDPOINT SECRET | trainer ENDPOINT SECRET SECONDS"
               " | rank N ENDPOINT SECRET STEPS\n");
  return 2;
}
