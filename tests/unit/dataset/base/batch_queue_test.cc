#include "dataset/base/batch_queue.h"

#include <doctest/doctest.h>

#include <thread>

namespace fleetrun::dataset {
namespace {

Batch batch_of(std::size_t rows) {
  Batch batch;
  batch.rows = rows;
  return batch;
}

TEST_CASE("batches come out in order, then the end") {
  BatchQueue queue(3);
  for (const std::size_t rows : {1, 2, 3}) {
    Batch batch = batch_of(rows);
    REQUIRE(queue.push(batch));
  }
  queue.finish();
  Batch batch;
  for (const std::size_t rows : {1, 2, 3}) {
    REQUIRE(queue.take(batch));
    CHECK(batch.rows == rows);
  }
  CHECK_FALSE(queue.take(batch));
  CHECK_FALSE(queue.take(batch));
}

TEST_CASE("the consumer's used batch goes back to the reader") {
  BatchQueue queue(2);
  Batch pushed = batch_of(1);
  REQUIRE(queue.push(pushed));
  Batch used = batch_of(99);
  REQUIRE(queue.take(used));
  CHECK(used.rows == 1);
  pushed = batch_of(2);
  REQUIRE(queue.push(pushed));
  CHECK(pushed.rows == 99);
}

TEST_CASE("abandoning wakes a reader that waits for space and drops what is queued") {
  BatchQueue queue(1);
  Batch first = batch_of(1);
  REQUIRE(queue.push(first));
  bool pushed = true;
  std::thread reader([&] {
    Batch second = batch_of(2);
    pushed = queue.push(second);
  });
  queue.abandon();
  reader.join();
  CHECK_FALSE(pushed);
  Batch batch;
  CHECK_FALSE(queue.take(batch));
}

TEST_CASE("abandoning wakes a consumer that waits for a batch") {
  BatchQueue queue(1);
  bool taken = true;
  std::thread consumer([&] {
    Batch batch;
    taken = queue.take(batch);
  });
  queue.abandon();
  consumer.join();
  CHECK_FALSE(taken);
}

TEST_CASE("a queue of one batch hands over every batch") {
  BatchQueue queue(1);
  std::thread reader([&] {
    for (std::size_t rows = 1; rows <= 10000; ++rows) {
      Batch batch = batch_of(rows);
      queue.push(batch);
    }
    queue.finish();
  });
  std::size_t rows = 0;
  Batch batch;
  bool in_order = true;
  while (queue.take(batch)) in_order = in_order && batch.rows == ++rows;
  reader.join();
  CHECK(in_order);
  CHECK(rows == 10000);
}

}  // namespace
}  // namespace fleetrun::dataset
