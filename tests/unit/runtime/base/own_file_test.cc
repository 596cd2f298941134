#include "runtime/base/own_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::tests;

namespace {

constexpr int kMake = O_WRONLY | O_CREAT | O_TRUNC;
constexpr uid_t kSomebody = 12345;

std::string write(const std::string& path, const std::string& text) {
  const UniqueFd file(open_own(path, kMake, Readers::by_directory));
  REQUIRE(file);
  REQUIRE(::write(file.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return path;
}

int refusal(const std::string& path, int flags = kMake) {
  const UniqueFd file(open_own(path, flags, Readers::owner));
  return file ? 0 : errno;
}

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

}  // namespace

TEST_CASE("a planted link is not followed, and a pipe not waited for") {
  const TempDir place;
  const std::string victim = write(place.path().string() + "/victim", "precious");
  const std::string link = place.path().string() + "/link", pipe = place.path().string() + "/pipe";
  std::filesystem::create_symlink(victim, link);
  REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
  CHECK(refusal(link) == ELOOP);
  CHECK(refusal(pipe) == EPERM);
  CHECK(refusal(place.path().string() + "/none/file") == ENOENT);
  CHECK(std::filesystem::file_size(victim) == 8);
}

TEST_CASE("a file of somebody else is neither emptied nor written") {
  if (::geteuid() != 0) return;  // only root gives files away
  const TempDir place;
  const std::string theirs = write(place.path().string() + "/theirs", "bait");
  REQUIRE(::chown(theirs.c_str(), kSomebody, kSomebody) == 0);
  CHECK(refusal(theirs) == EPERM);
  CHECK(std::filesystem::file_size(theirs) == 4);
  CHECK(refusal(theirs, O_WRONLY | O_CREAT | O_EXCL) == EEXIST);
}

TEST_CASE("a file is no more readable than its directory") {
  const mode_t before = ::umask(022);
  const TempDir place;
  const std::string own = place.path().string() + "/own";
  make_own_directory(own + "/deep");
  CHECK(mode_of(own + "/deep") == 0700);
  CHECK(mode_of(write(own + "/deep/file", "")) == 0600);
  REQUIRE(::chmod(place.path().c_str(), 0755) == 0);
  CHECK(mode_of(write(place.path().string() + "/shared", "")) == 0644);
  const UniqueFd log(open_own(place.path().string() + "/log", kMake, Readers::owner));
  CHECK(mode_of(place.path().string() + "/log") == 0600);
  ::umask(before);
}

TEST_CASE("a directory that all users share is left as it is") {
  const TempDir directory;
  const std::string shared = directory.file("shared");
  std::filesystem::create_directory(shared);
  REQUIRE(::chmod(shared.c_str(), 01777) == 0);
  CHECK(std::string(error_of([&] { make_own_directory(shared); }).what()) ==
        "the directory " + shared + " is one that all users share: name one below it");
  CHECK(std::filesystem::status(shared).permissions() ==
        (std::filesystem::perms::all | std::filesystem::perms::sticky_bit));
}

TEST_CASE("a directory of one's own is nobody else's, and no link") {
  const TempDir place;
  const std::string open = place.path().string() + "/open", link = place.path().string() + "/link";
  std::filesystem::create_directory(open);
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  make_own_directory(open);
  CHECK(mode_of(open) == 0700);
  std::filesystem::create_symlink(open, link);
  CHECK(std::string(error_of([&] { make_own_directory(link); }).what()) ==
        "the directory " + link + " is a symbolic link or a file");
  if (::geteuid() != 0) return;
  REQUIRE(::chown(open.c_str(), kSomebody, kSomebody) == 0);
  CHECK(std::string(error_of([&] { make_own_directory(open); }).what()) ==
        "the directory " + open + " belongs to user 12345, and this process runs as user 0");
}
