// Passes whose reader waits for a pipe that says nothing more: they must end at once when something fails.

#include "runtime/trainer/dataset_trainer.h"

#include <atomic>

#include <doctest/doctest.h>

#include "dataset/queue/queue_dataset.h"
#include "ps/memory/in_process.h"
#include "runtime/base/error.h"
#include "tests/support/counting_client.h"
#include "tests/support/pooled_model.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

/// A client whose server is gone when the second push comes.
class DyingClient final : public CountingClient {
 public:
  using CountingClient::CountingClient;

  std::unique_ptr<ps::Pending> push_async(const ps::Push& request) override {
    if (pushes++ > 0) {
      throw Error(ErrorKind::network, "server 0 at 127.0.0.1:40001 is gone");
    }
    return CountingClient::push_async(request);
  }

  std::atomic<int> pushes{0};
};

}  // namespace

TEST_CASE("a server that dies ends a pass whose other thread waits for a silent pipe") {
  for (const ps::Mode mode : {ps::Mode::async, ps::Mode::sync}) {
    const TempDir dir;
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "1 3 1 0.5\n";
    dataset::QueueDatasetOptions options;
    options.slots = {{"ids", dataset::SlotType::int64, false, 1},
                     {"label", dataset::SlotType::float32, true, 1}};
    options.batch_size = 2;
    options.threads = 2;
    options.files = {dir.write("full.txt", lines), dir.write("empty.txt", "")};
    options.pipe.command = "cat; exec tail -f /dev/null";
    dataset::QueueDataset dataset(options);

    PooledModel model(Lookups::rows);
    engine::Scope scope;
    const TablePlan plan =
        distribute(model.main, model.startup, "loss", {.learning_rate = 0.01}, Placement::server);
    engine::Executor(model.startup, scope).run({});
    auto clients = ps::make_in_process(1, 1, mode, plan.tables());
    clients[0]->set_dense(1, scope.tensor("w").values<float>());
    DyingClient client(*clients[0]);
    if (mode == ps::Mode::sync) {
      // Thread 1 has no batch, so a step would wait for it: the failure is the first thing that happens.
      client.pushes = 1;
    }
    try {
      run_epoch(model.main, scope, dataset, plan, &client, {.mode = mode});
      FAIL("no error was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::network);
      CHECK(std::string(error.what()) == "server 0 at 127.0.0.1:40001 is gone");
    }
  }
}
