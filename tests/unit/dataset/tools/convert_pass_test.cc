#include "dataset/tools/convert_pass.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/columnar_rows.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using namespace fleetrun::tests;

namespace {

struct Place {
  TempDir directory;
  ToolInput input;

  Place() {
    input.slots = {{.name = "id"}, {.name = "price", .type = SlotType::float32, .dense = true}};
    for (int file = 0; file < 5; ++file) {
      std::string text;
      for (int row = 0; row < 100; ++row)
        text +=
            "2 " + std::to_string(file) + " " + std::to_string(row) + " 1 0." + std::to_string(row) + "\n";
      input.files.push_back(directory.write("part-" + std::to_string(file), text));
    }
  }
  Batch rows(const std::vector<std::string>& files) const {
    Batch batch;
    std::string text;
    for (const std::string& file : files) {
      const auto reader = open_rows(input, file);
      Batch part;
      REQUIRE(reader->next(part, 1000) == RowReader::Outcome::end);
      if (batch.slots.empty()) batch.slots.resize(part.slots.size());
      for (std::size_t i = 0; i < part.slots.size(); ++i) append(batch.slots[i], part.slots[i]);
      batch.rows += part.rows;
    }
    return batch;
  }
};

std::string refusal(const std::vector<std::string>& files, const std::string& out) {
  try {
    plan_conversions(files, out);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("files get names of their own in a directory, or go into one file") {
  CHECK(plan_conversions({"a/x", "a/y.gz", "z.frc"}, "out") ==
        std::vector<Conversion>{
            {{"a/x"}, "out/x.frc"}, {{"a/y.gz"}, "out/y.gz.frc"}, {{"z.frc"}, "out/z.frc"}});
  CHECK(plan_conversions({"a/x", "a/y"}, "out.frc") == std::vector<Conversion>{{{"a/x", "a/y"}, "out.frc"}});
  CHECK(refusal({"a/x", "b/x"}, "out") == "a/x and b/x would both become x.frc");
  const TempDir directory;
  const std::string file = directory.write("a.frc", "");
  CHECK(refusal({file}, directory.path().string()) == file + " would be written over itself");
  CHECK(refusal({file}, file) == file + " would be written over itself");
  CHECK(plan_conversions({"a/x", "a/y"}, "b.parquet") ==
        std::vector<Conversion>{{{"a/x", "a/y"}, "b.parquet"}});
  const std::string between = directory.write("b.parquet.columns.frc", "");
  CHECK(refusal({between}, directory.file("b.parquet")) == between + " would be written over itself");
}

TEST_CASE("what was converted reads as the text did, whatever the threads") {
  const Place place;
  for (const std::size_t threads : {1u, 4u}) {
    std::size_t done = 0;
    const auto conversions = plan_conversions(place.input.files, place.directory.path().string());
    CHECK(convert(place.input, conversions,
                  {.block_rows = 33,
                   .threads = threads,
                   .done =
                       [&](const Conversion&, const ColumnarWritten& written) {
                         CHECK(written.rows == 100);
                         ++done;
                       }})
              .empty());
    CHECK(done == 5);
    std::vector<std::string> columns;
    for (const Conversion& conversion : conversions) columns.push_back(conversion.to);
    CHECK(place.rows(columns) == place.rows(place.input.files));
  }
  const std::string all = place.directory.file("all.frc");
  convert(place.input, plan_conversions(place.input.files, all), {});
  CHECK(place.rows({all}) == place.rows(place.input.files));
}

TEST_CASE("a bad line ends it, and nothing is there that is not complete") {
  Place place;
  place.input.files[1] = place.directory.write("part-1", "1 1 1 1\n1 1 1 x\n");
  const std::string all = place.directory.file("all.frc");
  CHECK_THROWS_WITH_AS(convert(place.input, plan_conversions(place.input.files, all), {}),
                       (place.input.files[1] + ":2:7: slot 'price': 'x' is not a number").c_str(), Error);
  CHECK_FALSE(std::filesystem::exists(all));
  CHECK_FALSE(std::filesystem::exists(all + ".partial"));
}

TEST_CASE("bad lines that are allowed are left out and told") {
  Place place;
  place.input.files = {place.directory.write("bad", "1 1 1 1\n1 1 1 x\n\n1 2 1 2\n")};
  const std::string all = place.directory.file("all.frc");
  const auto conversions = plan_conversions(place.input.files, all);
  const std::vector<BadLine> bad = convert(place.input, conversions, {.bad_lines_allowed = 2});
  REQUIRE(bad.size() == 2);
  CHECK(bad[0].fault.line == 2);
  CHECK(bad[1].fault.line == 3);
  CHECK(place.rows({all}).rows == 2);
  CHECK_THROWS_AS(convert(place.input, conversions, {.bad_lines_allowed = 1}), Error);
}
