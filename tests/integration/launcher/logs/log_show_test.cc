#include "launcher/logs/log_show.h"

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "launcher/logs/log_catalog.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace fs = std::filesystem;

namespace {

void append(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Two attempts of a pod: trainer 1 was restarted alone.
struct Logs {
  Logs() {
    append(pod + "/0/serverlog.0", "serving\n");
    append(pod + "/0/workerlog.0", "a\nb\nc\n");
    append(pod + "/0/workerlog.1", "died\n");
    append(pod + "/1/workerlog.1.1", "again\n");
    append(pod + "/1/workerlog.1", "newer\n");
    append(pod + "/events.jsonl",
           "{\"type\":\"job_began\",\"fleetrun_pid\":" + std::to_string(::getpid()) + "}\n");
  }

  std::string shown(LogSpec spec) const {
    const std::string out = directory.file("out");
    const UniqueFd fd(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    spec.pod_directory = pod;
    spec.output = fd.value();
    show_logs(spec);
    return text_of(out);
  }

  tests::TempDir directory;
  std::string pod = directory.file("log/abcdef");
};

}  // namespace

TEST_CASE("names of logs tell the role and the rank") {
  CHECK(log_of_name("workerlog.3")->role == "trainer");
  CHECK(log_of_name("workerlog.3")->rank == 3);
  CHECK(log_of_name("serverlog.0")->role == "server");
  CHECK(log_of_name("evaluatorlog.12")->role == "evaluator");
  for (const std::string name :
       {"workerlog", "workerlog.", "workerlog.x", "workerlog.-1", "log.0", ".log.0", "events.jsonl",
        "default.abcdef.trainer.0.log", "workerlog.0.1", "xworker.0"}) {
    CAPTURE(name);
    CHECK_FALSE(log_of_name(name));
  }
}

TEST_CASE("the newest attempt of each process is shown, one process after the other") {
  const Logs logs;
  CHECK(logs.shown({}) ==
        "server 0  | serving\ntrainer 0 | a\ntrainer 0 | b\ntrainer 0 | c\ntrainer 1 | again\ntrainer 1 | "
        "newer\n");
  CHECK(logs.shown({.pod_directory = "", .roles = {"trainer"}, .ranks = {1}, .attempt = {}, .lines = {}}) ==
        "again\nnewer\n");
  CHECK(logs.shown({.pod_directory = "", .roles = {}, .ranks = {1}, .attempt = 0, .lines = {}}) == "died\n");
  CHECK(logs.shown({.pod_directory = "",
                    .roles = {},
                    .ranks = {1},
                    .attempt = {},
                    .all_attempts = true,
                    .lines = {}}) == "died\nagain\nnewer\n");
  CHECK(logs.shown({.pod_directory = "", .roles = {"trainer"}, .ranks = {0}, .attempt = {}, .lines = 2}) ==
        "b\nc\n");
  CHECK(logs.shown({.pod_directory = "", .roles = {"trainer"}, .ranks = {0}, .attempt = {}, .lines = 0}) ==
        "");
  LogSpec nobody;
  nobody.pod_directory = logs.pod;
  nobody.ranks = {7};
  CHECK_THROWS_WITH_AS(show_logs(nobody),
                       ("there is no log of that role, rank or attempt in " + logs.pod).c_str(), Error);
}

TEST_CASE("following goes on with later attempts and ends with the job") {
  const Logs logs;
  std::thread job([&] {
    const auto shown = [&] { return text_of(logs.directory.file("out")); };
    while (shown().find("newer") == std::string::npos) std::this_thread::yield();
    append(logs.pod + "/1/workerlog.1", "more\n");
    append(logs.pod + "/2/workerlog.1", "third\n");
    while (shown().find("third") == std::string::npos) std::this_thread::yield();
    append(logs.pod + "/2/workerlog.1", "end");
    append(logs.pod + "/events.jsonl", "{\"schema\":1,\"type\":\"job_ended\",\"exit_status\":0}\n");
  });
  const std::string all = logs.shown(
      {.pod_directory = "", .roles = {"trainer"}, .ranks = {1}, .attempt = {}, .lines = {}, .follow = true});
  job.join();
  CHECK(all == "again\nnewer\nmore\nthird\nend");
}

TEST_CASE("a job is over when its last event says so, or its fleetrun is gone") {
  const Logs logs;
  CHECK_FALSE(job_is_over(logs.pod));
  CHECK_FALSE(job_is_over(logs.directory.file("nothing")));
  fs::remove(logs.pod + "/events.jsonl");
  append(logs.pod + "/events.jsonl", "{\"type\":\"job_began\",\"fleetrun_pid\":1999999999}\n");
  CHECK(job_is_over(logs.pod));
}

TEST_CASE("a pod is found by its name, by its job's, and the newest without one") {
  const tests::TempDir directory;
  const std::string top = directory.path();
  CHECK_FALSE(find_pod(top, std::nullopt));
  CHECK_FALSE(find_pod(directory.file("nothing"), std::nullopt));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string pod : {"uvwxyz", "abcdef", "ghijkl"}) append(top + "/" + pod + "/0/workerlog.0", "");
  fs::last_write_time(top + "/uvwxyz/0", old);
  fs::last_write_time(top + "/ghijkl/0", old - std::chrono::hours(1));
  append(top + "/ctr.uvwxyz.trainer.0.log", "");
  append(top + "/ctr.ghijkl.trainer.0.log", "");
  fs::create_directory(top + "/.python-abcdef");
  CHECK(list_pods(top) == std::vector<std::string>{"abcdef", "uvwxyz", "ghijkl"});
  CHECK(find_pod(top, std::nullopt) == "abcdef");
  CHECK(find_pod(top, "ghijkl") == "ghijkl");
  CHECK(find_pod(top, "ctr") == "uvwxyz");
  CHECK_FALSE(find_pod(top, "default"));
}
