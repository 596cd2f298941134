#include "ps/disk/row_directory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::TempDir;
namespace fs = std::filesystem;

namespace {

// What a process that was killed leaves: the directory, and a lock that nobody holds.
fs::path leave_one(const TempDir& base) {
  const RowDirectory own(base.path().string(), "job j, server 0");
  fs::create_directories(own.rows());
  std::ofstream(own.rows() + "/000001.sst") << "rows";
  const fs::path copy = base.path() / "fleetrun-rows-dead00";
  fs::copy(own.path(), copy, fs::copy_options::recursive);
  return copy;
}

}  // namespace

TEST_CASE("a directory says whose it is, and goes with its owner") {
  const TempDir base;
  std::string path;
  {
    const RowDirectory own(base.file("deeper/still"), "job j, server 3");
    path = own.path();
    CHECK(fs::path(path).parent_path() == base.file("deeper/still"));
    fs::create_directories(own.rows());
    std::ifstream file(path + "/owner");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    CHECK(text.find("\njob j, server 3\nprocess ") != std::string::npos);
    CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms::owner_all);
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("what a dead process left is removed") {
  const TempDir base;
  const fs::path left = leave_one(base);
  REQUIRE(fs::exists(left / "rows" / "000001.sst"));
  CHECK(remove_leftover_rows(base.path().string()) == 1);
  CHECK_FALSE(fs::exists(left));
}

TEST_CASE("a directory in use is left alone") {
  const TempDir base;
  const RowDirectory own(base.path().string(), "job j, server 0");
  CHECK(remove_leftover_rows(base.path().string()) == 0);
  CHECK(fs::exists(own.path() + "/owner"));
}

TEST_CASE("what is not ours is left alone, whatever its name") {
  const TempDir base;
  const fs::path left = leave_one(base);
  SUBCASE("another name") {
    fs::rename(left, base.path() / "somebody");
    CHECK(remove_leftover_rows(base.path().string()) == 0);
    CHECK(fs::exists(base.path() / "somebody" / "rows"));
  }
  SUBCASE("no owner's file") {
    fs::remove(left / "owner");
    CHECK(remove_leftover_rows(base.path().string()) == 0);
    CHECK(fs::exists(left / "rows" / "000001.sst"));
  }
  SUBCASE("an owner's file of another program") {
    std::ofstream(left / "owner") << "mine\n";
    CHECK(remove_leftover_rows(base.path().string()) == 0);
    CHECK(fs::exists(left / "rows" / "000001.sst"));
  }
  SUBCASE("the owner's file is a link") {
    fs::rename(left / "owner", base.path() / "owner");
    fs::create_symlink(base.path() / "owner", left / "owner");
    CHECK(remove_leftover_rows(base.path().string()) == 0);
    CHECK(fs::exists(left / "rows" / "000001.sst"));
  }
  SUBCASE("the directory is a link") {
    fs::rename(left, base.path() / "elsewhere");
    fs::create_directory_symlink(base.path() / "elsewhere", left);
    CHECK(remove_leftover_rows(base.path().string()) == 0);
    CHECK(fs::exists(base.path() / "elsewhere" / "rows" / "000001.sst"));
  }
  SUBCASE("something else is in it: that stays") {
    std::ofstream(left / "notes") << "mine\n";
    remove_leftover_rows(base.path().string());
    CHECK(fs::exists(left / "notes"));
  }
}

TEST_CASE("there is nothing to remove where there is no directory") {
  const TempDir base;
  CHECK(remove_leftover_rows(base.file("none")) == 0);
}
