#include "ps/watch/metrics_file.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "tests/support/temp_dir.h"

using fleetrun::ps::MetricsFile;
using fleetrun::tests::TempDir;

namespace {

constexpr std::chrono::seconds kSoon{60};

/// Counts what happens on another thread.
struct Counter {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;

  int add() {
    const std::lock_guard lock(mutex);
    changed.notify_all();
    return ++count;
  }
  bool await(int wanted) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kSoon, [&] { return count >= wanted; });
  }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the file holds the newest figures as a whole, and is gone with the server") {
  const TempDir directory;
  const std::string path = directory.file("figures");
  Counter texts;
  {
    const MetricsFile file(
        path, [&] { return "text " + std::to_string(texts.add()); }, [](const std::string&) { CHECK(false); },
        std::chrono::milliseconds(1));
    REQUIRE(texts.await(4));
    // While the fourth is being made, the third is complete.
    const std::string text = read_file(path);
    CHECK(text.starts_with("text "));
    CHECK(text.ends_with("\n"));
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a file that cannot be written is told of once, and ends nothing") {
  Counter texts, warnings;
  std::string warning;
  {
    const MetricsFile file(
        "/proc/nowhere/figures",
        [&] {
          texts.add();
          return std::string("text");
        },
        [&](std::string text) {
          warning = std::move(text);
          warnings.add();
        },
        std::chrono::milliseconds(1));
    REQUIRE(warnings.await(1));
  }
  CHECK(warning.starts_with("fleetrun cannot read this server's metrics: /proc/nowhere/figures: "));
  CHECK(warnings.count == 1);
  CHECK(texts.count == 1);
}
