#include "ps/durable/checkpoint.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::error_of;
using fleetrun::tests::TempDir;

TEST_CASE(
    "what a server keeps beside its tables is read as it was written, or refused where it is cut short") {
  KeptState state;
  state.first_segment = 9;
  state.server = 123;
  state.histories[{0, 77}] = PushHistory::restore(5, {7, 9});
  state.histories[{3, 78}] = PushHistory::restore(0, {});
  state.barrier_service = {std::byte{1}, std::byte{2}};
  const std::vector<std::byte> bytes = to_bytes(state);
  const KeptState read = parse_kept_state(bytes);
  CHECK(read.first_segment == 9);
  CHECK(read.server == 123);
  REQUIRE(read.histories.size() == 2);
  CHECK(read.histories.at({0, 77}).prefix() == 5);
  CHECK(read.histories.at({0, 77}).beyond() == std::vector<std::uint64_t>{7, 9});
  CHECK(read.barrier_service == state.barrier_service);
  for (std::size_t size = 0; size + state.barrier_service.size() < bytes.size(); ++size)
    CHECK_THROWS_AS(parse_kept_state({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                    Error);
}

TEST_CASE("a directory says whose it is; every flipped and every missing byte of that is found") {
  const TempDir directory;
  const std::string place = directory.path().string();
  CHECK_FALSE(read_owner(place));
  write_owner(place, {"job-1", "server 0 of 1"});
  REQUIRE(read_owner(place));
  CHECK(read_owner(place)->run == "job-1");
  CHECK(read_owner(place)->server == "server 0 of 1");
  const std::string path = place + "/owner";
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const Error error = error_of([&] { read_owner(place); });
    return error.kind() == ErrorKind::data && error.what() == path + " is damaged" &&
           error.hint() == "load the tables from a save, and start with an empty checkpoint directory";
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    REQUIRE(refused(flipped));
    REQUIRE(refused(whole.substr(0, at)));
  }
  CHECK(refused(whole + "x"));
}

TEST_CASE("a directory belongs to one server at a time") {
  const TempDir directory;
  const std::string mine = directory_of_server(directory.path().string(), 3);
  CHECK(mine == directory.path().string() + "/server-00003");
  {
    const auto lock = lock_directory(mine);
    CHECK(std::string(error_of([&] { lock_directory(mine); }).what()) ==
          mine + " is in use by another server");
  }
  lock_directory(mine);
}

TEST_CASE("a directory is cleared of what servers keep") {
  const TempDir directory;
  for (const char* name : {"manifest", "manifest.previous", "owner", "lock", "log-0000000000000001",
                           "part-0000000000000000-0000000000000003-00000-000"})
    directory.write(name, "x");
  clear_directory(directory.path().string());
  CHECK(std::filesystem::exists(directory.file("lock")));
  for (const char* name : {"manifest", "manifest.previous", "owner", "log-0000000000000001",
                           "part-0000000000000000-0000000000000003-00000-000"})
    CHECK_FALSE(std::filesystem::exists(directory.file(name)));
}
