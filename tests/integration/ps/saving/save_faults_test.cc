// A save that dies, or whose disk fails, at each of its system calls;
// and what is left of it after a power loss.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/integration/ps/saving/disk_after_power_loss.h"
#include "tests/integration/ps/saving/file_faults.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;

namespace {

const std::vector<TableConfig> kTables{sparse_table(0, "rows", 2), dense_table(1, "dense", 5)};

std::vector<std::uint64_t> keys() {
  std::vector<std::uint64_t> out(50);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i * 7919;
  return out;
}

std::unique_ptr<Client> client_of(std::uint32_t servers) {
  return std::move(make_in_process(servers, 1, Mode::async, kTables)[0]);
}

// Servers in which every number is `value`.
std::unique_ptr<Client> client_with(float value) {
  auto client = client_of(2);
  client->set_dense(1, std::vector<float>(5, value));
  const std::vector<float> values(2 * keys().size(), value);
  client->push({.thread = 0, .sparse = {{0, keys(), values}}, .dense = {}});
  return client;
}

// The number that all of a save are; -1 when they differ, -2 when nothing can be loaded.
float loaded_value(const std::string& directory) {
  const auto client = client_of(3);
  try {
    client->load(directory);
  } catch (const fleetrun::Error&) {
    return -2.0f;
  }
  std::vector<float> rows(2 * keys().size());
  std::vector<float> dense(5);
  const auto all = keys();
  client->pull({.sparse = {{0, all, rows}}, .dense = {{1, dense}}});
  rows.insert(rows.end(), dense.begin(), dense.end());
  return std::all_of(rows.begin(), rows.end(), [&](float value) { return value == rows[0]; }) ? rows[0]
                                                                                              : -1.0f;
}

// Saves 1, 2, 3 are there; only the last two are kept.
void prepare(const std::string& directory) {
  std::filesystem::remove_all(directory);
  watch_files(directory, FileFault::none, 0);  // without waiting for the disk
  for (const float value : {1.0f, 2.0f, 3.0f}) client_with(value)->save(directory);
  stop_watching_files();
}

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

// Saves 4 over the others in another process, whose `at`-th call suffers `fault`. Its exit status: 0 it has
// saved, 1 it has said that it has not, and which signal ended it, plus 100.
int save_in_child(const std::string& directory, FileFault fault, std::uint64_t at, bool& came_to_it) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 0;
    try {
      const auto client = client_with(4.0f);
      watch_files(directory, fault, at);
      client->save(directory);
    } catch (const fleetrun::Error&) {
      status = 1;
    }
    ::_exit(status + (stop_watching_files() >= at ? 10 : 0));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return 100 + WTERMSIG(status);
  came_to_it = WEXITSTATUS(status) >= 10;
  return WEXITSTATUS(status) % 10;
}

// The next save goes through, and leaves nothing behind but two saves.
void check_next_save(const std::string& directory) {
  watch_files(directory, FileFault::none, 0);
  client_with(5.0f)->save(directory);
  stop_watching_files();
  CHECK(loaded_value(directory) == 5.0f);
  CHECK(files_in(directory) == 6);
}

}  // namespace

TEST_CASE("a save that is killed at any of its calls leaves exactly the save that was committed last") {
  const TempDir dir;
  const std::string directory = dir.file("saves");
  bool committed = false;
  bool came_to_it = true;
  std::uint64_t at = 0;
  while (came_to_it) {
    prepare(directory);
    CHECK(files_in(directory) == 6);
    const int end = save_in_child(directory, FileFault::kill, ++at, came_to_it);
    CAPTURE(at);
    REQUIRE((end == 100 + SIGKILL || (!came_to_it && end == 0)));
    const float value = loaded_value(directory);
    REQUIRE((value == 3.0f || value == 4.0f));
    // Once committed it stays so, however much later the process dies.
    REQUIRE((!committed || value == 4.0f));
    committed = value == 4.0f;
    check_next_save(directory);
  }
  CHECK(committed);
  CHECK(at > 20);
}

TEST_CASE("a disk that fails at any call of a save is reported, and the save before is whole") {
  const TempDir dir;
  const std::string directory = dir.file("saves");
  for (const FileFault fault : {FileFault::no_space, FileFault::io_error, FileFault::short_write}) {
    bool came_to_it = true;
    std::size_t reported = 0;
    for (std::uint64_t at = 1; came_to_it; ++at) {
      prepare(directory);
      const int end = save_in_child(directory, fault, at, came_to_it);
      CAPTURE(at);
      REQUIRE(end <= 1);
      const float value = loaded_value(directory);
      REQUIRE((value == 4.0f || (value == 3.0f && end == 1)));
      reported += end == 1 ? 1 : 0;
      check_next_save(directory);
    }
    CHECK(reported > 10);
  }
}

TEST_CASE(
    "after a power loss at any moment a save is the old one or the new one, and the new one once it was "
    "reported") {
  const TempDir dir;
  const std::string directory = dir.file("saves");
  prepare(directory);
  DiskAfterPowerLoss disk(directory);
  const auto client = client_with(4.0f);
  watch_files(directory, FileFault::none, 0);
  client->save(directory);
  record_done();
  stop_watching_files();
  const std::vector<FileStep> steps = file_steps();
  CHECK(steps.size() > 15);
  std::mt19937 random(20260101);
  const std::string after = dir.file("after");
  bool reported = false;
  std::size_t states = 0;
  for (const FileStep& step : steps) {
    disk.take(step, directory);
    reported = reported || step.kind == FileStep::Kind::done;
    for (int variant = 0; variant < 8; ++variant) {
      disk.write(after, [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
      const float value = loaded_value(after);
      CAPTURE(states);
      REQUIRE((value == 4.0f || (value == 3.0f && !reported)));
      ++states;
    }
  }
  CHECK(reported);
}
