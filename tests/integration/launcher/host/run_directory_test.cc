#include "launcher/host/run_directory.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

#include "launcher/host/secret_file.h"
#include "runtime/base/error.h"
#include "runtime/secure/secret.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::TempDir;
namespace fs = std::filesystem;

namespace {

JobEntry job(const std::string& pod, const std::string& job_id = "default") {
  JobEntry entry;
  entry.job_id = job_id;
  entry.pod = pod;
  entry.mode = "collective";
  entry.processes = 2;
  entry.log_dir = "/some/log";
  return entry;
}

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Error refusal(const std::vector<JobEntry>& jobs, const std::optional<std::string>& name) {
  try {
    select_job(jobs, name);
  } catch (const Error& error) {
    return error;
  }
  FAIL("not refused");
  throw;
}

UniqueFd listen_at(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  REQUIRE(::bind(socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(socket.value(), 1) == 0);
  return socket;
}

}  // namespace

TEST_CASE("an entry is there as long as its object, in a directory of one's own") {
  const TempDir directory;
  const std::string path = directory.file("fleetrun");
  {
    const RunEntry entry({path}, job("abcdef"));
    CHECK(mode_of(path) == 0700);
    CHECK(mode_of(path + "/abcdef.json") == 0600);
    const auto jobs = list_jobs({path});
    REQUIRE(jobs.size() == 1);
    CHECK(jobs[0] == entry.entry());
    CHECK(jobs[0].pid == ::getpid());
    CHECK(jobs[0].directory == path);
    CHECK(jobs[0].name == "abcdef");
    CHECK(fs::exists(path + "/.abcdef.next") == false);
  }
  CHECK(fs::is_empty(path));
  CHECK(list_jobs({path}).empty());
}

TEST_CASE("an entry whose process is gone, or another one by now, is removed by whoever lists") {
  const TempDir directory;
  const std::string path = directory.file("fleetrun");
  const RunEntry living({path}, job("living"));
  const std::string text = text_of(path + "/living.json");
  const auto write = [&](const std::string& name, const std::string& what, const std::string& with) {
    std::ofstream(path + "/" + name + ".json") << std::regex_replace(text, std::regex(what), with);
    std::ofstream(path + "/" + name + ".sock");
  };
  write("reused", "\"start_ticks\":\\d+", "\"start_ticks\":1");
  write("gone", "\"pid\":\\d+", "\"pid\":4194304");
  // Of another container: one in which somebody listens, one in which nobody does any more.
  write("elsewhere", "\"pid_namespace\":\\d+", "\"pid_namespace\":1");
  write("abandoned", "\"pid_namespace\":\\d+", "\"pid_namespace\":1");
  std::ofstream(path + "/abandoned.secret") << "secret";
  const UniqueFd listening = listen_at(path + "/elsewhere.sock");
  listen_at(path + "/abandoned.sock");
  std::ofstream(path + "/garbage.json") << "{\"schema\":1";
  std::ofstream(path + "/empty.json");
  std::ofstream(path + "/newer.json") << "{\"schema\":2}";
  fs::create_symlink("/etc/passwd", path + "/link.json");
  std::vector<std::string> names;
  for (const JobEntry& entry : list_jobs({path})) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"elsewhere", "living"});
  for (const char* name : {"reused.json", "reused.sock", "gone.json", "gone.sock", "abandoned.json",
                           "abandoned.sock", "abandoned.secret"})
    CHECK_MESSAGE(!fs::exists(path + "/" + name), name);
  CHECK(fs::exists(path + "/garbage.json"));
}

TEST_CASE("secrets of launchers that were killed before they had an entry are removed") {
  const TempDir directory;
  const std::string path = directory.file("fleetrun");
  SecretFile living({path}, "living", Secret::random());
  const auto age = [&](const std::string& name) {
    const std::string file = path + "/" + name + ".secret";
    if (!fs::exists(file)) std::ofstream(file) << "secret";
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  for (const char* name : {"living", "killed", "running"}) age(name);
  std::ofstream(path + "/running.json") << "{\"schema\":2}";
  std::ofstream(path + "/young.secret") << "secret";
  SUBCASE("by whoever lists") {
    list_jobs({path});
  }
  SUBCASE("by the next job") {
    const SecretFile next({path}, "next", Secret::random());
  }
  CHECK(!fs::exists(path + "/killed.secret"));
  for (const char* name : {"living", "running", "young"}) CHECK(fs::exists(path + "/" + name + ".secret"));
  living = {};
  CHECK(!fs::exists(path + "/living.secret"));
}

TEST_CASE("two jobs of one pod name do not take each other's entry") {
  const TempDir directory;
  const std::string path = directory.file("fleetrun");
  const RunEntry first({path}, job("abcdef"));
  {
    const RunEntry second({path}, job("abcdef"));
    CHECK(second.entry().name == "abcdef." + std::to_string(::getpid()));
    CHECK(list_jobs({path}).size() == 2);
  }
  CHECK(list_jobs({path}).size() == 1);
}

TEST_CASE("an unsafe directory is passed over, and refused when there is no other") {
  const TempDir directory;
  fs::create_directory(directory.file("real"));
  fs::create_symlink(directory.file("real"), directory.file("link"));
  directory.write("file", "");
  const std::vector<std::string> unsafe = {directory.file("link"), directory.file("file"),
                                           directory.file("a/b")};
  {
    std::vector<std::string> all = unsafe;
    all.push_back(directory.file("good"));
    const RunEntry entry(all, job("abcdef"));
    CHECK(entry.entry().directory == directory.file("good"));
    CHECK(list_jobs(all).size() == 1);
  }
  CHECK(fs::is_empty(directory.file("real")));
  CHECK_THROWS_AS(RunEntry(unsafe, job("abcdef")), Error);
  if (::geteuid() == 0) {
    fs::create_directory(directory.file("others"));
    REQUIRE(::chown(directory.file("others").c_str(), 12345, 12345) == 0);
    std::string why;
    CHECK(!open_private_directory(directory.file("others"), false, why));
    CHECK(why == directory.file("others") + " belongs to another user");
    CHECK(list_jobs({directory.file("others")}).empty());
  }
}

TEST_CASE("a directory that others use is left as it is") {
  const TempDir directory;
  const std::string shared = directory.file("shared");
  fs::create_directory(shared);
  std::ofstream(shared + "/theirs") << "file";
  fs::permissions(shared, fs::perms::all);
  std::string why;
  CHECK(!open_private_directory(shared, true, why));
  CHECK(why == shared + " is open to other users, and not empty");
  CHECK(fs::status(shared).permissions() == fs::perms::all);
}

TEST_CASE("an empty directory that others could enter is closed to them") {
  const TempDir directory;
  fs::create_directory(directory.file("open"));
  fs::permissions(directory.file("open"), fs::perms::all);
  const RunEntry entry({directory.file("open")}, job("abcdef"));
  CHECK(mode_of(directory.file("open")) == 0700);
}

TEST_CASE("what is called before the entry is seen may refuse it") {
  const TempDir directory;
  const std::string path = directory.file("fleetrun");
  CHECK_THROWS_AS(RunEntry({path}, job("abcdef"),
                           [&](const RunEntry& entry) {
                             CHECK(entry.socket_name() == "abcdef.sock");
                             CHECK(list_jobs({path}).empty());
                             throw Error(ErrorKind::host, "no socket");
                           }),
                  Error);
  CHECK(fs::is_empty(path));
}

TEST_CASE("a job is chosen by pod or job id; several are listed and none is taken") {
  const std::vector<JobEntry> jobs = {job("aaaaaa"), job("bbbbbb"), job("cccccc", "other"),
                                      job("other", "third")};
  CHECK(select_job(jobs, "bbbbbb").pod == "bbbbbb");
  CHECK(select_job(jobs, "third").pod == "other");
  CHECK(select_job(jobs, "other").pod == "other");  // a pod is one job
  CHECK(select_job({jobs[0]}, std::nullopt).pod == "aaaaaa");
  const Error several = refusal(jobs, "default");
  CHECK(std::string(several.what()) ==
        "2 jobs are called default, and nothing was done:\n"
        "  default (pod aaaaaa): 2 processes, pid -1, logs in /some/log\n"
        "  default (pod bbbbbb): 2 processes, pid -1, logs in /some/log");
  CHECK(several.hint() == "name one by its pod, for example bbbbbb");
  CHECK(std::string(refusal(jobs, std::nullopt).what()).starts_with("4 jobs run, and nothing was done:\n"));
  CHECK(std::string(refusal(jobs, "nosuch").what()).starts_with("no job is called nosuch; these run:\n"));
  CHECK(std::string(refusal({}, std::nullopt).what()) == "no job of this user runs on this host");
  CHECK(std::string(refusal({}, "nosuch").what()) == "no job of this user runs on this host: nosuch");
}

TEST_CASE("where jobs are looked for") {
  CHECK(run_directories(Environ{}, 7) == std::vector<std::string>{"/tmp/fleetrun-7", "/run/user/7/fleetrun"});
  CHECK(run_directories(Environ{{"XDG_RUNTIME_DIR", "/x"}}, 7) ==
        std::vector<std::string>{"/x/fleetrun", "/tmp/fleetrun-7", "/run/user/7/fleetrun"});
  CHECK(run_directories(Environ{{"XDG_RUNTIME_DIR", "/run/user/7"}}, 7) ==
        std::vector<std::string>{"/run/user/7/fleetrun", "/tmp/fleetrun-7"});
  CHECK(run_directories(Environ{{"XDG_RUNTIME_DIR", "relative"}}, 7).front() == "/tmp/fleetrun-7");
  CHECK(run_directories(Environ{{"XDG_RUNTIME_DIR", "/x"}, {"FLEETRUN_RUN_DIR", "/y"}}, 7) ==
        std::vector<std::string>{"/y"});
}
