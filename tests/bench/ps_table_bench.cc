// How fast a sparse table pulls and pushes, how fast a batch's distinct keys are found, and what a step of
// the shape 26 slots x 1,000 examples, dim 10, 430,000 dense values costs over gRPC on the loopback
// interface. Prints one line per measurement: the median of its repetitions, and the fastest and slowest in
// brackets.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ps/key_groups.h"
#include "ps/memory/in_process.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "ps/sparse_table.h"

namespace {

using namespace fleetrun::ps;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWidth = 10;
constexpr std::size_t kBatch = 26000;
constexpr std::size_t kDense = 430000;
constexpr std::size_t kBatches = 40;

struct Spread {
  double median;
  double least;
  double most;
};

Spread measure(std::size_t repetitions, const std::function<void(std::size_t)>& action) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < repetitions; ++i) {
    const auto before = Clock::now();
    action(i);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
}

void print_rate(const char* what, const Spread& s, double items) {
  std::printf("%-58s %8.2f M/s  (%.2f .. %.2f)\n", what, items / s.median / 1e6, items / s.most / 1e6,
              items / s.least / 1e6);
}

void print_time(const char* what, const Spread& s) {
  std::printf("%-58s %8.3f ms   (%.3f .. %.3f)\n", what, s.median * 1e3, s.least * 1e3, s.most * 1e3);
}

TableConfig rows_table(UpdateRule::Kind rule) {
  TableConfig config;
  config.name = "emb";
  config.kind = TableConfig::Kind::sparse;
  config.width = kWidth;
  config.rule.kind = rule;
  config.rule.initial_accumulator = 0.1f;
  config.initializer = {Initializer::Kind::uniform, -0.1, 0.1, 1};
  return config;
}

// `distinct` false: a tenth of the keys are most of the batch, as in click logs.
std::vector<std::vector<std::uint64_t>> make_batches(std::uint64_t keys, bool distinct) {
  std::mt19937_64 random(1);
  std::vector<std::vector<std::uint64_t>> batches(kBatches, std::vector<std::uint64_t>(kBatch));
  for (auto& batch : batches) {
    for (std::uint64_t& key : batch) {
      key = random() % keys;
      if (!distinct && random() % 4 != 0) key %= 2000;
    }
  }
  return batches;
}

void bench_table(UpdateRule::Kind rule, std::uint64_t keys) {
  SparseTable table(rows_table(rule));
  std::vector<std::uint64_t> all(keys);
  for (std::uint64_t i = 0; i < keys; ++i) all[i] = i;
  std::vector<float> everything(keys * kWidth);
  const std::string of = std::string(to_string(rule)) + ", " + std::to_string(keys) + " rows";
  print_rate(("first pull, " + of).c_str(), measure(1, [&](auto) { table.pull(all, everything.data()); }),
             static_cast<double>(keys));
  const auto batches = make_batches(keys, true);
  std::vector<float> rows(kBatch * kWidth, 0.01f);
  print_rate(("pull, " + of).c_str(),
             measure(kBatches, [&](std::size_t i) { table.pull(batches[i], rows.data()); }), kBatch);
  print_rate(("push, " + of).c_str(),
             measure(kBatches, [&](std::size_t i) { table.push(batches[i], rows.data()); }), kBatch);
}

void bench_groups(bool distinct) {
  const auto batches = make_batches(1000000, distinct);
  std::vector<float> gradients(kBatch * kWidth, 0.01f);
  std::vector<float> out(kBatch * kWidth);
  float* to = out.data();
  const std::string of = distinct ? ", mostly distinct" : ", many equal";
  print_time(("distinct keys of 26,000" + of).c_str(),
             measure(kBatches, [&](std::size_t i) { group_keys(batches[i], 1); }));
  print_time(("distinct keys and summed gradients" + of).c_str(), measure(kBatches, [&](std::size_t i) {
               sum_by_group(group_keys(batches[i], 1), gradients, kWidth, {&to, 1});
             }));
}

void bench_client(const std::string& how, Client& client, bool distinct) {
  const auto batches = make_batches(1000000, distinct);
  std::vector<float> rows(kBatch * kWidth);
  std::vector<float> dense(kDense, 0.01f);
  client.set_dense(1, dense);
  for (const auto& batch : batches) client.pull({.sparse = {{0, batch, rows}}, .dense = {}});
  const auto pull = [&](std::size_t i) {
    client.pull({.sparse = {{0, batches[i], rows}}, .dense = {{1, dense}}});
  };
  const auto push = [&](std::size_t i) {
    client.push({.thread = 0, .sparse = {{0, batches[i], rows}}, .dense = {{1, dense}}});
  };
  const std::string of = how + (distinct ? ", mostly distinct" : ", many equal");
  print_time((of + ": pull 26,000 rows, 430,000 dense").c_str(), measure(kBatches, pull));
  print_time((of + ": push 26,000 rows, 430,000 dense").c_str(), measure(kBatches, push));
  print_time((of + ": pull of one row").c_str(), measure(500, [&](std::size_t) {
               client.pull({.sparse = {{0, std::span(batches[0]).first(1), std::span(rows).first(kWidth)}},
                            .dense = {}});
             }));
}

void bench_tables() {
  for (const auto rule : {UpdateRule::Kind::sgd, UpdateRule::Kind::adagrad, UpdateRule::Kind::adam}) {
    bench_table(rule, 1000000);
  }
  bench_table(UpdateRule::Kind::adagrad, 10000000);
  for (const bool distinct : {true, false}) bench_groups(distinct);
}

void bench_clients() {
  TableConfig dense = rows_table(UpdateRule::Kind::adagrad);
  dense.id = 1;
  dense.name = "dense";
  dense.kind = TableConfig::Kind::dense;
  dense.width = kDense;
  const std::vector<TableConfig> tables{rows_table(UpdateRule::Kind::adagrad), dense};
  for (const bool distinct : {true, false}) {
    bench_client("in process", *make_in_process(1, 1, Mode::async, tables)[0], distinct);
    RpcServer server({0, 1, 1, Mode::async, tables}, "127.0.0.1:0");
    const auto client = connect({server.endpoint()}, {0, 1, Mode::async, tables});
    bench_client("gRPC", *client, distinct);
  }
}

}  // namespace

// Any argument leaves out the tables and measures the clients only.
int main(int argc, char**) {
  if (argc == 1) bench_tables();
  bench_clients();
}
