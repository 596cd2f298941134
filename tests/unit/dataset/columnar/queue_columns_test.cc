#include "dataset/columnar/queue_columns.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

QueueDatasetOptions asked() {
  QueueDatasetOptions options;
  options.slots = {{.name = "a"}, {.name = "b"}, {.name = "c", .dense = true}};
  options.slots[1].used = false;
  options.files = {"x.frc", "y.frc"};
  options.batch_size = 7;
  options.threads = 3;
  options.drop_last = true;
  return options;
}

std::string refusal(const QueueDatasetOptions& options) {
  try {
    columns_for_queue(options);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the pass is the same, over the slots that are used") {
  const ColumnarDatasetOptions columns = columns_for_queue(asked());
  CHECK(columns.slots == std::vector<Slot>{{.name = "a"}, {.name = "c", .dense = true}});
  CHECK(columns.files == std::vector<std::string>{"x.frc", "y.frc"});
  CHECK(columns.batch_size == 7);
  CHECK(columns.threads == 3);
  CHECK(columns.drop_last);
}

TEST_CASE("what is for text only is refused") {
  QueueDatasetOptions mixed = asked(), piped = asked(), keyed = asked(), described = asked();
  mixed.files.push_back("z.txt");
  piped.pipe.command = "python reader.py";
  keyed.prefixes.id = true;
  described.schema = "s.json";
  CHECK(refusal(mixed) == "z.txt is not a columnar file, and others of the 3 files are");
  CHECK(refusal(piped) == "a pipe command, 'python reader.py', with columnar files");
  CHECK(refusal(keyed) == "ids, contents or log keys of lines, with columnar files");
  CHECK(refusal(described) == "a schema, s.json, with columnar files");
}
