// A trainer of one's own on fleetrun's parameter servers, in C++: a linear model whose weights, one for each
// key, lie on the servers. No framework, no engine: pull rows, compute, push gradients.
//
//   fleetrun --server_num=2 --trainer_num=2 ./ps_client_example [SAVE_DIRECTORY [STEPS]]
//
// fleetrun starts this program four times and tells each one who it is (fleetrun-environment(7)).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"

namespace {

using namespace fleetrun;

constexpr std::uint64_t kKeys = 500;
constexpr std::size_t kExamples = 64, kKeysOfOne = 3;

// Servers and trainers make the same list; they compare it when they meet.
std::vector<ps::TableConfig> tables() {
  ps::TableConfig weights;
  weights.id = 0;
  weights.name = "weights";
  weights.kind = ps::TableConfig::Kind::sparse;
  weights.width = 1;
  weights.rule.kind = ps::UpdateRule::Kind::sgd;
  weights.rule.learning_rate = 0.1f;
  return {weights};
}

std::vector<std::string> texts(const EndpointList& endpoints) {
  std::vector<std::string> out;
  for (const Endpoint& endpoint : endpoints) out.push_back(to_string(endpoint));
  return out;
}

int serve(const Identity& identity, const Environ& environ) {
  ps::ServerOptions options;
  options.rank = static_cast<std::uint32_t>(identity.rank);
  options.servers = static_cast<std::uint32_t>(identity.servers.size());
  options.trainers = static_cast<std::uint32_t>(identity.trainers.size());
  options.tables = tables();
  ps::RpcServer server(options, to_string(self_endpoint(identity)),
                       {.held_by_launcher = environ.has("FLEETRUN_LISTEN"),
                        .access = ps::access_of(environ),
                        .metrics_file = environ.value_or("FLEETRUN_SERVER_FIGURES", "")});
  server.wait();  // until all trainers have said goodbye
  return 0;
}

// What the model has to learn: the weight of each key.
float truth(std::uint64_t key) {
  return static_cast<float>(key % 7) - 3.0f;
}

// One step; returns the mean squared error before it.
double step(ps::Client& client, std::mt19937_64& random) {
  std::vector<std::uint64_t> keys(kExamples * kKeysOfOne);
  for (std::uint64_t& key : keys) key = random() % kKeys;
  std::vector<float> rows(keys.size());
  client.pull({.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}});
  std::vector<float> gradients(keys.size());
  double loss = 0;
  for (std::size_t example = 0; example < kExamples; ++example) {
    float error = 0;
    for (std::size_t i = example * kKeysOfOne; i < (example + 1) * kKeysOfOne; ++i)
      error += rows[i] - truth(keys[i]);
    for (std::size_t i = example * kKeysOfOne; i < (example + 1) * kKeysOfOne; ++i) gradients[i] = error;
    loss += static_cast<double>(error) * error / kExamples;
  }
  // Keys that are there more than once are fine: their gradients are added up.
  client.push({.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = gradients}}, .dense = {}});
  return loss;
}

int train(const Identity& identity, const Environ& environ, const std::string& directory, int steps) {
  ps::ClientOptions options;
  options.trainer = static_cast<std::uint32_t>(identity.rank);
  options.trainers = static_cast<std::uint32_t>(identity.trainers.size());
  options.tables = tables();
  const auto client = ps::connect(texts(identity.servers), options, {.access = ps::access_of(environ)});
  std::mt19937_64 random(options.trainer);
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    loss = step(*client, random);
    if (i % 100 == 0 && i < 1000) std::printf("trainer %d step %d loss %.4f\n", identity.rank, i, loss);
  }
  client->barrier();
  std::printf("trainer %d loss %.6f rows %llu\n", identity.rank, loss,
              static_cast<unsigned long long>(client->rows(0)));
  if (identity.rank == 0 && !directory.empty()) client->save(directory);
  client->goodbye();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Environ environ = Environ::of_process();
    const Identity identity = identity_from(environ);
    if (identity.role == Role::server) return serve(identity, environ);
    return train(identity, environ, argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 300);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", render(error, "ps_client_example").c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ps_client_example: %s\n", error.what());
  }
  return 1;
}
