#include "runtime/secure/secret.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/secure/job_secret_file.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using fleetrun::tests::TempDir;

namespace {

const std::string kBytes = "0123456789abcdefghijklmnopqrstuv";
constexpr char kHex[] = "303132333435363738396162636465666768696a6b6c6d6e6f70717273747576";
constexpr char kBase64[] = "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY=";

std::string private_file(const TempDir& directory, std::string_view text, mode_t mode = 0600) {
  const std::string path = directory.write("secret", text);
  ::chmod(path.c_str(), mode);
  return path;
}

/// "what | hint" of the refusal; empty: it was taken.
std::string refusal_of(const std::string& path) {
  try {
    read_secret_file(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a secret's file holds 32 bytes, plain, hexadecimal or base64, with or without a newline") {
  const TempDir directory;
  for (const std::string& text :
       {kBytes, std::string(kHex), std::string(kBase64), std::string(kBase64).substr(0, 43)}) {
    for (const char* end : {"", "\n", "\r\n"}) {
      if (text == kBytes && std::string_view(end) == "\r\n") continue;
      CHECK_MESSAGE(read_secret_file(private_file(directory, text + end)).bytes() == kBytes, text << end);
    }
  }
  std::string capital = kHex;
  for (char& digit : capital) digit = static_cast<char>(::toupper(digit));
  CHECK(read_secret_file(private_file(directory, capital)).bytes() == kBytes);
  const std::string binary = std::string(31, '\xff') + "\n";  // its last byte is not an end of line
  CHECK(read_secret_file(private_file(directory, binary)).bytes() == binary);
  CHECK(read_secret_file(private_file(directory, kHex, 0400)).bytes() == kBytes);
  CHECK(read_secret_file(private_file(directory, "-_" + std::string(41, 'A'))).bytes().size() == 32);
}

TEST_CASE("a file that holds no secret is refused, with what to do") {
  const TempDir directory;
  CHECK(has(refusal_of(private_file(directory, "")), "the file is empty | make one: (umask 077; head -c 32"));
  CHECK(has(refusal_of(private_file(directory, "short")), "nor 32 bytes in base64 (the file has 5 bytes)"));
  CHECK(has(refusal_of(private_file(directory, "\n")), "(the file has 1 bytes)"));
  CHECK(has(refusal_of(private_file(directory, std::string(kHex) + "0")), "(the file has 65 bytes)"));
  CHECK(has(refusal_of(private_file(directory, std::string(63, 'a') + "g")), "nor 64 hexadecimal digits"));
  CHECK(has(refusal_of(private_file(directory, std::string(5000, 'a'))), "at least 1024 bytes"));
  CHECK_THROWS_WITH_AS(read_secret_file(private_file(directory, std::string(64, '0'))),
                       "all bytes of the secret are the same: it was not drawn at random", Error);
}

TEST_CASE("a file that others can read or change is refused") {
  const TempDir directory;
  for (const mode_t mode : {0604, 0640, 0602, 0620, 0644, 0666, 0601}) {
    // Root's file may be read by its group, when root is somebody else.
    const std::string refusal = refusal_of(private_file(directory, kHex, mode));
    CHECK(has(refusal, "others may read or change it (mode 0"));
    CHECK(has(refusal, "| chmod 600 "));
  }
}

TEST_CASE("what is not a file of this user is refused, and never waited for") {
  const TempDir directory;
  CHECK(has(refusal_of(directory.file("none")), "No such file or directory | copy it from the host"));
  CHECK(has(refusal_of(directory.path().string()), "it is a directory | name the file in it"));
  REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
  CHECK(has(refusal_of(directory.file("fifo")), "it is not a file | name a file"));
  CHECK(has(refusal_of("/dev/null"), "it is not a file"));
  if (::geteuid() != 0) return;  // only root can give a file away
  const std::string path = private_file(directory, kHex);
  REQUIRE(::chown(path.c_str(), 4321, 4321) == 0);
  CHECK(has(refusal_of(path), "it belongs to user 4321, and this is user 0 | use a copy that is yours"));
}

TEST_CASE("secrets are drawn, compared and derived") {
  const Secret one = Secret::random();
  CHECK(one.bytes().size() == 32);
  CHECK(one == Secret::from_bytes(one.bytes()));
  CHECK_FALSE(one == Secret::random());
  CHECK(one.derive("job:a") == one.derive("job:a"));
  CHECK_FALSE(one.derive("job:a") == one.derive("job:b"));
  CHECK_FALSE(one.derive("job:a") == one);
  CHECK(one.derive("x").bytes() == hmac_sha256(one.bytes(), "x"));
  CHECK_THROWS_WITH_AS(Secret::from_bytes("short"), "a secret has 32 bytes, not 5", Error);
}

TEST_CASE("a job's secret is that job's alone, and its file says which") {
  const TempDir directory;
  const Secret own = Secret::random(), of_a = secret_of_job(own, "a");
  CHECK(of_a == secret_of_job(own, "a"));
  CHECK_FALSE(of_a == secret_of_job(own, "b"));
  CHECK_FALSE(of_a == own);
  const std::string text = job_secret_text(of_a, "a");
  CHECK(text.starts_with("job a\n"));
  CHECK(text.find(hex(own.bytes())) == std::string::npos);
  const std::string path = directory.write("a", text);
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  CHECK(read_secret_file(path) == of_a);
  CHECK(job_of_secret_file(path) == "a");
  write_secret_file(directory.file("own"), own);
  CHECK(job_of_secret_file(directory.file("own")) == "");
  CHECK(job_of_secret_file(directory.file("none")) == "");
}

TEST_CASE("a secret that is written reads back, and nothing is overwritten") {
  const TempDir directory;
  const Secret secret = Secret::random();
  const std::string path = directory.file("secret");
  const mode_t umask_before = ::umask(0777);
  write_secret_file(path, secret);
  ::umask(umask_before);
  CHECK(mode_of(path) == 0600);
  CHECK(read_secret_file(path) == secret);
  CHECK_THROWS_AS(write_secret_file(path, secret), Error);
  std::filesystem::create_symlink(directory.file("elsewhere"), directory.file("link"));
  CHECK_THROWS_AS(write_secret_file(directory.file("link"), secret), Error);
  CHECK_FALSE(std::filesystem::exists(directory.file("elsewhere")));
}

TEST_CASE("the user's secret is made at first use, for this user alone") {
  const TempDir directory;
  std::string path;
  const Secret first = user_secret({{"HOME", directory.path().string()}}, path);
  CHECK(path == directory.file(".config/fleetrun/secret"));
  CHECK(mode_of(path) == 0600);
  CHECK(mode_of(directory.file(".config/fleetrun")) == 0700);
  CHECK(user_secret({{"HOME", directory.path().string()}}, path) == first);
  const Environ elsewhere = {{"HOME", "/nowhere"}, {"XDG_CONFIG_HOME", directory.file("config")}};
  CHECK_FALSE(user_secret(elsewhere, path) == first);
  CHECK(path == directory.file("config/fleetrun/secret"));
  const std::filesystem::directory_iterator files(directory.file("config/fleetrun"));
  CHECK(std::distance(begin(files), end(files)) == 1);  // no draft is left
}

TEST_CASE("without a place for it, the user's secret is asked for") {
  std::string path;
  for (const Environ& environment :
       {Environ{}, Environ{{"HOME", ""}}, Environ{{"HOME", "relative"}, {"XDG_CONFIG_HOME", "relative"}}}) {
    try {
      user_secret(environment, path);
      FAIL_CHECK("made at " << path);
    } catch (const Error& error) {
      CHECK(has(error.what(), "HOME is not set"));
      CHECK(has(error.hint(), "--secret-file"));
    }
  }
  try {
    user_secret({{"HOME", "/dev/null"}}, path);
    FAIL_CHECK("made at " << path);
  } catch (const Error& error) {
    CHECK(has(error.what(), "cannot be made at /dev/null/.config/fleetrun/secret"));
    CHECK(has(error.hint(), "--secret-file"));
  }
}

TEST_CASE("launchers that make the user's secret at the same time agree on one") {
  const TempDir directory;
  const Environ environment = {{"HOME", directory.path().string()}};
  std::vector<std::string> made(8);
  std::vector<std::thread> threads;
  for (std::string& bytes : made) {
    threads.emplace_back([&] {
      std::string path;
      bytes = user_secret(environment, path).bytes();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bytes : made) CHECK(bytes == made[0]);
}
