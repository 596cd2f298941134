#include "ps/rpc/access.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::ps;

namespace {

std::string write_secret(const std::filesystem::path& path, const std::string& text,
                         std::filesystem::perms mode) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, mode);
  return path.string();
}

constexpr auto kMine = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
const std::string kDigits = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

}  // namespace

TEST_CASE("the file that fleetrun names counts, and what is proved by it proves nothing to a launcher") {
  const tests::TempDir folder;
  const std::string path = write_secret(folder.path() / "secret", kDigits, kMine);
  const Access access = access_of({{"FLEETRUN_SECRET_FILE", path}, {"XDG_CONFIG_HOME", "/nowhere"}});
  REQUIRE(access.secret);
  CHECK(access.source == path);
  CHECK(*access.secret == *access_of({{"FLEETRUN_SECRET_FILE", path}}).secret);
  CHECK(!(*access.secret == read_secret_file(path)));
}

TEST_CASE("without the variable it is the user's own secret, the same for all of the user's processes") {
  const tests::TempDir folder;
  const Environ environ{{"XDG_CONFIG_HOME", folder.path().string()}};
  const Access first = access_of(environ);
  REQUIRE(first.secret);
  CHECK(first.source == (folder.path() / "fleetrun" / "secret").string());
  CHECK(*first.secret == *access_of(environ).secret);
}

TEST_CASE("with FLEETRUN_INSECURE=1 there is none, and nothing else turns it off") {
  CHECK(!access_of({{"FLEETRUN_INSECURE", "1"}, {"FLEETRUN_SECRET_FILE", "/nowhere"}}).secret);
  const tests::TempDir folder;
  for (const char* value : {"0", "", "true"})
    CHECK(access_of({{"FLEETRUN_INSECURE", value}, {"XDG_CONFIG_HOME", folder.path().string()}}).secret);
}

TEST_CASE("a file that is missing or that others can read is refused") {
  const tests::TempDir folder;
  const std::string open =
      write_secret(folder.path() / "open", kDigits, kMine | std::filesystem::perms::others_read);
  for (const std::string& path : {open, (folder.path() / "missing").string()}) {
    try {
      access_of({{"FLEETRUN_SECRET_FILE", path}});
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(std::string(error.what()).find(path) != std::string::npos);
    }
  }
}
