#include "runtime/inference/tensor_file.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::inference {
namespace {

std::string file_of(const std::string& header, const std::string& values) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + values;
}

struct Folder {
  tests::TempDir directory;
  std::string write(const std::string& bytes) const { return directory.write("tensors", bytes); }
  std::string refusal(const std::string& bytes) const {
    try {
      read_tensors(write(bytes));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return error.what();
    }
    return "none";
  }
};

TEST_CASE("tensors of every type come back") {
  const Folder folder;
  std::string values;
  const float floats[] = {0.5F, -2.0F};
  const std::int64_t ints[] = {-1};
  values.append(reinterpret_cast<const char*>(floats), sizeof floats);
  values.append(reinterpret_cast<const char*>(ints), sizeof ints);
  values.append("\1\0\1", 3);
  const auto tensors = read_tensors(folder.write(file_of(
      R"({"__metadata__": {"by": "hand"}, "w": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
          "i": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]},
          "b": {"dtype": "BOOL", "shape": [3], "data_offsets": [16, 19]},
          "e": {"dtype": "F64", "shape": [0, 4], "data_offsets": [19, 19]},
          "n": {"dtype": "I32", "shape": [0], "data_offsets": [0, 0]}})",
      values)));
  REQUIRE(tensors.size() == 5);
  CHECK(tensors.at("w").shape() == engine::Shape{2, 1});
  CHECK(tensors.at("w").values<float>()[1] == -2.0F);
  CHECK(tensors.at("i").shape().empty());
  CHECK(tensors.at("i").values<std::int64_t>()[0] == -1);
  CHECK(static_cast<const char*>(tensors.at("b").data())[2] == 1);
  CHECK(tensors.at("e").shape() == engine::Shape{0, 4});
  CHECK(tensors.at("n").type() == engine::DataType::int32);
}

TEST_CASE("a file that is cut anywhere is refused") {
  const Folder folder;
  const std::string whole =
      file_of(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", "12345678");
  CHECK(folder.refusal(whole) == "none");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CAPTURE(bytes);
    CHECK(folder.refusal(whole.substr(0, bytes)).find("tensors is damaged") != std::string::npos);
  }
}

TEST_CASE("what a header says must fit the file") {
  const Folder folder;
  const auto one = [&](const std::string& entry) {
    return folder.refusal(file_of(R"({"w": )" + entry + "}", "12345678"));
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says(one(R"({"dtype": "F16", "shape": [2], "data_offsets": [0, 4]})"), "'w' has values of type F16");
  says(one(R"({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]})"),
       "'w' should be at 4 to 12 of 8 bytes");
  says(one(R"({"dtype": "F32", "shape": [2], "data_offsets": [8, 0]})"), "'w' should be at 8 to 0");
  says(one(R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 8]})"), "'w' needs 4 bytes and has 8");
  says(one(R"({"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8]})"),
       "larger than the file");
  says(one(R"({"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]})"), "");
  says(one(R"({"dtype": "F32", "shape": 2, "data_offsets": [0, 8]})"), "the entry of 'w'");
  says(one(R"({"dtype": 3, "shape": [2], "data_offsets": [0, 8]})"), "the entry of 'w'");
  says(one("[]"), "the entry of 'w'");
  says(folder.refusal(file_of("[1]", "")), "not a JSON object");
  says(folder.refusal(file_of("{", "")), "not a JSON object");
  says(folder.refusal(file_of(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                  "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                              "12345678")),
       "two of its tensors are at one place");
  CHECK_THROWS_AS(read_tensors(folder.directory.file("none")), Error);
}

TEST_CASE("a boolean is 0 or 1") {
  const Folder folder;
  const std::string header = R"({"b": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}})";
  CHECK(folder.refusal(file_of(header, "\1\2")).find("'b' has booleans that are neither 0 nor 1") !=
        std::string::npos);
}

}  // namespace
}  // namespace fleetrun::inference
