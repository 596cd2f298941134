#include "dataset/base/file_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <filesystem>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using fleetrun::tests::TempDir;

namespace {

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("part-" + std::to_string(1000 + i));
  return all;
}

std::vector<std::string> drained(FileQueue& queue) {
  std::vector<std::string> all;
  while (const auto file = queue.next()) all.push_back(*file);
  return all;
}

}  // namespace

TEST_CASE("one who shares with nobody gets all files, and the same claims are done then") {
  const TempDir directory;
  const auto queue = make_shared_queue(names(5), directory.file("claims"));
  CHECK(drained(*queue) == names(5));
  CHECK_FALSE(queue->next());
  CHECK_FALSE(make_shared_queue(names(5), directory.file("claims"))->next());
  CHECK(drained(*make_shared_queue(names(5), directory.file("claims of the next pass"))) == names(5));
  CHECK_FALSE(make_shared_queue({}, directory.file("of no files"))->next());
}

TEST_CASE("who is fast takes what a slow one does not") {
  const TempDir directory;
  const auto slow = make_shared_queue(names(5), directory.file("claims"));
  auto fast = make_shared_queue(names(5), directory.file("claims"));
  CHECK(slow->next() == "part-1000");
  for (const char* file : {"part-1001", "part-1002", "part-1003"}) CHECK(fast->next() == file);
  CHECK(slow->next() == "part-1004");
  fast.reset();
  CHECK(slow->next() == "part-1003");
  CHECK_FALSE(slow->next());
}

TEST_CASE("a file whose reader goes before it is done is given to another") {
  const TempDir directory;
  auto lost = make_shared_queue(names(2), directory.file("claims"));
  const auto other = make_shared_queue(names(2), directory.file("claims"));
  CHECK(lost->next() == "part-1000");
  CHECK(other->next() == "part-1001");
  lost.reset();
  CHECK(other->next() == "part-1000");
  CHECK_FALSE(other->next());
}

TEST_CASE("many who share get each file once, and none ends while a file is held") {
  const TempDir directory;
  constexpr std::size_t kReaders = 8, kFiles = 300;
  std::mutex mutex;
  std::vector<std::string> all;
  std::barrier start(kReaders);
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < kReaders; ++i)
    readers.emplace_back([&] {
      start.arrive_and_wait();
      const auto queue = make_shared_queue(names(kFiles), directory.file("claims"));
      for (const std::string& file : drained(*queue)) {
        const std::lock_guard lock(mutex);
        all.push_back(file);
      }
    });
  for (std::thread& reader : readers) reader.join();
  std::sort(all.begin(), all.end());
  CHECK(all == names(kFiles));
}

TEST_CASE("who waits for a file that another holds gets it when that one goes, and nothing when it is done") {
  const TempDir directory;
  for (const bool is_done : {false, true}) {
    const std::string claims = directory.file(is_done ? "done" : "lost");
    auto holder = make_shared_queue(names(1), claims);
    REQUIRE(holder->next() == "part-1000");
    std::optional<std::string> got = "nothing yet";
    std::thread waiter([&] { got = make_shared_queue(names(1), claims)->next(); });
    if (is_done) CHECK_FALSE(holder->next());
    holder.reset();
    waiter.join();
    CHECK(got == (is_done ? std::nullopt : std::optional<std::string>("part-1000")));
  }
}

TEST_CASE("a file whose owner goes before it is done is kept for it, and the others wait") {
  const TempDir directory;
  const std::string claims = directory.file("claims");
  auto lost = make_shared_queue(names(3), claims, 1);
  const auto other = make_shared_queue(names(3), claims, 2);
  CHECK(other->next() == "part-1000");
  CHECK(lost->next() == "part-1001");
  lost.reset();
  CHECK(other->next() == "part-1002");
  std::optional<std::string> got = "nothing yet";
  std::thread waiter([&] { got = other->next(); });
  const auto back = make_shared_queue(names(3), claims, 1);
  CHECK(back->next() == "part-1001");
  CHECK_FALSE(back->next());
  waiter.join();
  CHECK_FALSE(got);
}

TEST_CASE("other files, and a place where nothing can be written, are refused") {
  const TempDir directory;
  const std::string claims = directory.file("claims");
  make_shared_queue(names(3), claims);
  CHECK_THROWS_WITH_AS(make_shared_queue(names(4), claims),
                       (claims + " is of another list of files than these 4").c_str(), Error);
  CHECK_THROWS_AS(make_shared_queue(names(3), directory.file("no/claims")), Error);
}
