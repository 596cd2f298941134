// A server's log and checkpoints after a power loss at any moment, and while the disk takes nothing.
#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <random>

#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "tests/integration/ps/saving/disk_after_power_loss.h"
#include "tests/integration/ps/saving/file_faults.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;
using fleetrun::Error;

namespace {

const std::vector<TableConfig> kTables{sparse_table(0, "count", 1)};

ServerOptions options(const std::string& directory, LogSync sync = LogSync::power) {
  ServerOptions out{.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = kTables};
  out.durability.directory = directory;
  out.durability.interval = std::chrono::milliseconds(0);
  out.durability.sync = sync;
  return out;
}

/// The answer's bytes. Waits for it: it may come from the thread that syncs.
std::vector<std::byte> ask(Server& server, const Message& request) {
  std::promise<std::vector<std::byte>> answered;
  Reader reader(request.bytes());
  const wire::Header header = wire::read_header(reader);
  server.handle(header, std::move(reader), [&](Outcome outcome) {
    REQUIRE(std::holds_alternative<Message>(outcome));
    const auto bytes = std::get<Message>(outcome).bytes();
    answered.set_value({bytes.begin(), bytes.end()});
  });
  return answered.get_future().get();
}

std::uint64_t hello(Server& server) {
  return wire::read_greeting(Reader(ask(server, make_hello({0, 1, Mode::async, kTables}, 7, 0, 1))))
      .next_change;
}

void push(Server& server, std::uint64_t number) {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, 0, 0, 7, 0, number},
                                           {.sparse = {{.table = 0, .width = 1, .keys = 1}}, .dense = {}});
  draft.keys[0][0] = 5;
  draft.gradients[0][0] = 1.0f;
  ask(server, draft.message);
}

std::string error_of_checkpoint(Server& server) {
  try {
    server.make_checkpoint();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

float count(Server& server) {
  wire::PullDraft draft = wire::draft_pull({wire::Method::pull, 0, 0, 7},
                                           {.sparse = {{.table = 0, .width = 1, .keys = 1}}, .dense = {}});
  draft.keys[0][0] = 5;
  return Reader(ask(server, draft.message)).value<float>();
}

}  // namespace

TEST_CASE("after a power loss at any moment a server has every push that it answered, once") {
  const TempDir directory;
  const std::string kept = directory.file("kept"), mine = kept + "/server-00000";
  std::optional<DiskAfterPowerLoss> disk;
  {
    Server server(options(kept));
    REQUIRE(hello(server) == 1);
    disk.emplace(mine);
    watch_files(mine, FileFault::none, 0);
    server.make_checkpoint();
    for (std::uint64_t number = 1; number <= 9; ++number) {
      push(server, number);
      record_done();
      if (number % 4 == 0) server.make_checkpoint();
    }
    stop_watching_files();
  }
  const std::vector<FileStep> steps = file_steps();
  CHECK(steps.size() > 60);
  std::mt19937 random(20260101);
  const std::string after = directory.file("after");
  std::uint64_t answered = 0;
  for (const FileStep& step : steps) {
    disk->take(step, mine);
    answered += step.kind == FileStep::Kind::done ? 1 : 0;
    for (int variant = 0; variant < 5; ++variant) {
      disk->write(after + "/server-00000",
                  [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
      Server server(options(after));
      const std::uint64_t next = hello(server);
      CAPTURE(answered);
      REQUIRE(next > answered);
      REQUIRE(count(server) == static_cast<float>(next - 1));
    }
  }
  CHECK(answered == 9);
}

TEST_CASE(
    "after a power loss a server whose log is safe from its process's end has no gap, or says what is gone") {
  const TempDir directory;
  const std::string kept = directory.file("kept"), mine = kept + "/server-00000";
  std::optional<DiskAfterPowerLoss> disk;
  {
    Server server(options(kept, LogSync::process));
    REQUIRE(hello(server) == 1);
    server.make_checkpoint();
    disk.emplace(mine);
    watch_files(mine, FileFault::none, 0);
    for (std::uint64_t number = 1; number <= 9; ++number) {
      push(server, number);
      if (number % 4 == 0) server.make_checkpoint();
    }
    stop_watching_files();
  }
  const std::vector<FileStep> steps = file_steps();
  CHECK(steps.size() > 30);
  std::mt19937 random(20260101);
  const std::string after = directory.file("after");
  int went_on = 0, refused = 0;
  for (const FileStep& step : steps) {
    disk->take(step, mine);
    for (int variant = 0; variant < 5; ++variant) {
      disk->write(after + "/server-00000",
                  [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
      try {
        Server server(options(after, LogSync::process));
        REQUIRE(count(server) == static_cast<float>(hello(server) - 1));
        ++went_on;
      } catch (const Error& error) {
        REQUIRE(error.kind() == fleetrun::ErrorKind::data);
        ++refused;
      }
    }
  }
  CHECK(went_on > refused);
}

TEST_CASE("pushes are answered while a checkpoint waits for the disk") {
  const TempDir directory;
  const std::string kept = directory.file("kept");
  Server server(options(kept, LogSync::process));
  REQUIRE(hello(server) == 1);
  watch_files(kept + "/server-00000", FileFault::none, 0);
  hold_syncs();
  auto checkpoint = std::async(std::launch::async, [&] { server.make_checkpoint(); });
  await_held_sync();
  auto pushed = std::async(std::launch::async, [&] {
    push(server, 1);
    return count(server);
  });
  const bool is_answered = pushed.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  let_syncs_go_on();
  checkpoint.get();
  CHECK(is_answered);
  CHECK(pushed.get() == 1.0f);
  stop_watching_files();
}

TEST_CASE("a server says that the disk of its log does not answer, and when it does again") {
  const TempDir directory;
  const std::string kept = directory.file("kept"), mine = kept + "/server-00000";
  std::promise<std::string> slow, over;
  ServerOptions impatient = options(kept);
  impatient.durability.disk_patience = std::chrono::milliseconds(20);
  Server server(
      impatient, [] {},
      [&](const Error& error, bool is_fatal) {
        CHECK_FALSE(is_fatal);
        const std::string said = error.what();
        (said.find("again") == std::string::npos ? slow : over).set_value(said);
      });
  watch_files(mine, FileFault::none, 0);
  server.make_checkpoint();  // a log that is watched
  hold_syncs();
  auto greeted = std::async(std::launch::async, [&] { return hello(server); });
  const std::string first = slow.get_future().get();
  CHECK(greeted.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  let_syncs_go_on();
  CHECK(greeted.get() == 1);
  CHECK(first == mine + " has not taken the log for 0 s: its disk does not answer, and trainers wait for it");
  CHECK(over.get_future().get().starts_with(mine + " takes the log again, after "));
  stop_watching_files();
}

TEST_CASE("a checkpoint that the disk fails is made another time, and training goes on") {
  const TempDir directory;
  const std::string kept = directory.file("kept"), mine = kept + "/server-00000";
  watch_files(mine, FileFault::none, 0);
  Server server(
      options(kept, LogSync::process), [] {}, [](const Error&, bool is_fatal) { CHECK_FALSE(is_fatal); });
  REQUIRE(hello(server) == 1);
  std::uint64_t pushes = 0, failed = 0;
  bool is_through = false;
  for (std::uint64_t at = 1; !is_through; ++at) {
    push(server, ++pushes);
    watch_files(mine, FileFault::io_error, at);
    const std::string said = error_of_checkpoint(server);
    is_through = stop_watching_files() < at;
    if (said.ends_with("Input/output error (fdatasync)")) ++failed;
  }
  CHECK(failed >= 2);
  push(server, ++pushes);
  CHECK(count(server) == static_cast<float>(pushes));
  server.make_checkpoint();
}

TEST_CASE(
    "where the disk fails the log of a checkpoint, a server that promises it is told, and answers nothing "
    "more") {
  const TempDir directory;
  const std::string kept = directory.file("kept"), mine = kept + "/server-00000";
  int told = 0;
  watch_files(mine, FileFault::none, 0);
  Server server(
      options(kept), [] {}, [&](const Error&, bool is_fatal) { told += is_fatal ? 1 : 0; });
  REQUIRE(hello(server) == 1);
  watch_files(mine, FileFault::io_error, 1);
  CHECK(error_of_checkpoint(server).ends_with("Input/output error (fdatasync)"));
  stop_watching_files();
  CHECK(told == 1);
  CHECK(error_of_checkpoint(server).ends_with("an earlier write to this log failed"));
  CHECK(told == 1);
}
