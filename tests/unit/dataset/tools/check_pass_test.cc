#include "dataset/tools/check_pass.h"

#include <doctest/doctest.h>

#include "dataset/tools/check_text.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using fleetrun::tests::TempDir;

namespace {

ToolInput input_of(std::vector<std::string> files) {
  ToolInput input;
  input.files = std::move(files);
  input.slots = {{.name = "ids"}, {.name = "price", .type = SlotType::float32, .dense = true}};
  return input;
}

}  // namespace

TEST_CASE("all files are read, by however many threads, and bad lines are told in the order of the files") {
  const TempDir directory;
  std::vector<std::string> files;
  for (int file = 0; file < 9; ++file) {
    std::string text;
    for (int row = 0; row < 6000; ++row) text += "1 " + std::to_string(file * 6000 + row) + " 1 0.5\n";
    files.push_back(
        directory.write("part-" + std::to_string(file), text + "1 x 1 0.5\n1 1 1 y\n1 0 1 0.25\n"));
  }
  for (const std::size_t threads : {1u, 4u, 20u}) {
    const CheckResult result = check_files_of(input_of(files), {.threads = threads, .listed = 3});
    CHECK(result.rows == 9 * 6001);
    CHECK(result.bad_lines == 18);
    CHECK(result.slots[0].values == 9 * 6001);
    CHECK(result.slots[0].missing == 10);
    CHECK(result.slots[0].max_int == 53999);
    CHECK(bad_lines_text(result) ==
          files[0] + ":6001:3: slot 'ids': 'x' is not a whole number\n" + files[0] +
              ":6002:7: slot 'price': 'y' is not a number\n" + files[1] +
              ":6001:3: slot 'ids': 'x' is not a whole number\nand 15 more bad lines\n");
  }
}

TEST_CASE("reading ends after as many bad lines as are wanted") {
  const TempDir directory;
  const std::string file = directory.write("a", "x\nx\nx\n1 1 1 1\n");
  const CheckResult result = check_files_of(input_of({file}), {.max_bad = 2});
  CHECK(result.bad_lines == 2);
  CHECK(result.rows == 0);
}

TEST_CASE("a file that cannot be read ends it with its name") {
  const TempDir directory;
  const std::string good = directory.write("a", "1 1 1 1\n");
  CHECK_THROWS_WITH_AS(check_files_of(input_of({good, directory.file("b")}), {}),
                       (directory.file("b") + ": No such file or directory").c_str(), Error);
}

TEST_CASE("the table has a line for each slot, and JSON the same figures") {
  const TempDir directory;
  const ToolInput input = input_of({directory.write("a", "2 5 -7 1 0.5\n1 0 1 nan\n1 3 1 -2\n")});
  const CheckResult result = check_files_of(input, {});
  CHECK(check_text(input.slots, result, 1) ==
        "1 file, 3 rows, 0 bad lines\n\n"
        "slot              values  in a row  missing  min  max   mean  distinct\n"
        "ids:int64              4    1 to 2        1   -7    5                4\n"
        "price:float32[1]       3         1        1   -2  0.5  -0.75         3\n");
  CHECK(
      check_json(input.slots, result, 1) ==
      R"({"files":1,"rows":3,"bad_lines":0,"bad":[],"slots":[)"
      R"({"name":"ids","type":"int64","rows":3,"values":4,"missing":1,"fewest":1,"most":2,"min":-7,"max":5,)"
      R"("distinct":4,"distinct_is_exact":true},)"
      R"({"name":"price","type":"float32","width":1,"rows":3,"values":3,"missing":1,"fewest":1,"most":1,)"
      R"("min":-2,"max":0.5,"mean":-0.75,"distinct":3,"distinct_is_exact":true}]})"
      "\n");
}

TEST_CASE("files without a row have a summary, too") {
  const TempDir directory;
  const ToolInput input = input_of({directory.write("a", "")});
  const CheckResult result = check_files_of(input, {});
  CHECK(check_text(input.slots, result, 1)
            .find("ids:int64              0         -        0    -    -               0") !=
        std::string::npos);
  CHECK(check_json(input.slots, result, 1).find("\"min\"") == std::string::npos);
}
