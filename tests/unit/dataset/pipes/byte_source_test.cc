#include "dataset/pipes/byte_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::dataset {
namespace {

std::string read_all(ByteSource& source) {
  std::string text;
  std::vector<char> room(7);
  while (const std::size_t bytes = source.read(room)) text.append(room.data(), bytes);
  return text;
}

TEST_CASE("cat, blanks and nothing read the file itself") {
  const tests::TempDir directory;
  const std::string file = directory.write("part", "1 2\n3 4 without an end");
  for (const char* command : {"cat", "", " cat ", "  "}) {
    CAPTURE(command);
    CHECK(read_all(*open_byte_source({.file = file, .pipe = {.command = command}})) ==
          "1 2\n3 4 without an end");
  }
  CHECK(read_all(*open_byte_source({.file = directory.write("empty", "")})).empty());
}

TEST_CASE("a mark of UTF-8 at the beginning is no part of the first value") {
  const tests::TempDir directory;
  const std::string mark = "\xEF\xBB\xBF", half = "\xEF\xBB";
  const auto read = [&](const std::string& text, const char* command = "cat") {
    return read_all(*open_byte_source({.file = directory.write("part", text), .pipe = {.command = command}}));
  };
  CHECK(read(mark + "1 2\n") == "1 2\n");
  CHECK(read(mark + mark + "1 2\n" + mark) == mark + "1 2\n" + mark);
  for (const std::string& text : {std::string(), std::string("1"), half, half + "1 2", "1" + mark}) {
    CAPTURE(text);
    CHECK(read(text) == text);
  }
  CHECK(read(mark).empty());
  CHECK(read(mark + "1 2\n", "sed s/2/3/") == "1 3\n");
}

TEST_CASE("a file that is gone by the time it is opened is named") {
  const tests::TempDir directory;
  try {
    open_byte_source({.file = directory.file("gone")});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.what() == directory.file("gone") + ": No such file or directory");
    CHECK(error.hint().empty());
  }
}

TEST_CASE("a file that shrinks, grows or goes while it is read is an error with the place") {
  const tests::TempDir directory;
  const auto error_after = [&](auto change) {
    const std::string file = directory.write("part", "1 2\n3 4\n5 6\n");
    const auto source = open_byte_source({.file = file});
    std::vector<char> room(4);
    REQUIRE(source->read(room) == 4);
    change(file);
    try {
      read_all(*source);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(error.hint() ==
            "write a new file under another name and rename it; do not change a file that is being read");
      return std::string(error.what()).substr(file.size());
    }
    return std::string("no error");
  };
  CHECK(error_after([](const std::string& file) { std::filesystem::resize_file(file, 6); }) ==
        ": had 12 bytes when it was opened and has 6 now; reading ended at byte 6");
  CHECK(error_after([](const std::string& file) { std::ofstream(file, std::ios::app) << "7"; }) ==
        ": had 12 bytes when it was opened and has 13 now; reading ended at byte 13");
  CHECK(error_after([](const std::string& file) { std::filesystem::remove(file); }) ==
        ": was deleted while it was read; reading ended at byte 12");
  CHECK(error_after([](const std::string&) {}) == "no error");
}

TEST_CASE("the command as an error calls it") {
  CHECK(command_text({.command = " cat "}).empty());
  CHECK(command_text({.command = " sed p\n"}) == "sed p");
  CHECK(command_text({.argv = {"python", "a reader.py"}}) == "python 'a reader.py'");
}

TEST_CASE("all files that cannot be read are named at once") {
  const tests::TempDir directory;
  const std::string good = directory.write("good", "1 1\n");
  check_files({good, good});
  std::filesystem::create_directory(directory.file("folder"));
  REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
  try {
    check_files(
        {directory.file("a"), good, directory.file("folder"), directory.file("fifo"), directory.file("b")});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()) ==
          "4 of 5 files cannot be read: " + directory.file("a") + " (No such file or directory), " +
              directory.file("folder") + " (is a directory), " + directory.file("fifo") +
              " (is not a regular file), " + directory.file("b") + " (No such file or directory)");
    CHECK(error.hint() ==
          "check the list given to set_filelist(); relative names start at the directory of the process");
  }
}

}  // namespace
}  // namespace fleetrun::dataset
