#include "launcher/status/control_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "launcher/status/control_client.h"
#include "launcher/status/job_services.h"
#include "launcher/status/job_status_json.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "tests/support/job_plan.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::job_plan;
using fleetrun::tests::TempDir;
using namespace std::chrono_literals;

namespace {

constexpr auto kDeadline = 20s;

/// What a server asks for, written down.
class Recorder final : public ControlHandler {
 public:
  void request_stop(const StopRequest& request) override { stops.push_back(request); }
  void request_signal(const SignalRequest&) override {}
  std::string request_restart(const RestartRequest&) override { return {}; }
  void request_resize(const ResizeRequest& request, std::function<void(std::string)> done) override {
    done(request.servers == 5 ? "" : "not " + std::to_string(request.servers));
  }
  void request_stacks(std::function<void(std::string)> done) override { done("stacks"); }

  std::vector<StopRequest> stops;
};

/// A supervisor that does nothing but write down what it is asked for.
class FakeControl final : public JobControl {
 public:
  explicit FakeControl(Plan job) : plan_(std::move(job)) {}

  boost::asio::io_context& loop() override { return loop_; }
  const Plan& plan() const override { return plan_; }
  const std::vector<LogFile>& logs() const override { return logs_; }
  void send_signal(std::size_t index, int number) override { signals.emplace_back(index, number); }
  void request_stop(bool now) override { stops.push_back(now); }
  void report_hang(const event::HangFound&) override {}
  void heard(const MemberSaid&) override {}
  void want(const CountWanted&) override {}
  void tell(const JobEvent& event) override {
    if (const auto* warning = std::get_if<event::Warning>(&event)) warnings.push_back(warning->text);
    if (part) part->on_event(event);
  }

  std::vector<std::pair<std::size_t, int>> signals;
  std::vector<bool> stops;
  std::vector<std::string> warnings;

 private:
  Plan plan_;
  std::vector<LogFile> logs_;
  boost::asio::io_context loop_{1};

 public:
  std::unique_ptr<JobPart> part;  // goes before the loop
};

/// A job's services in a loop of their own, as the supervisor has them.
class Host {
 public:
  explicit Host(RestartScope trainers = RestartScope::nobody)
      : control(plan_in(directory.file("log"), trainers)), guard_(control.loop().get_executor()) {
    ServiceSettings settings;
    settings.run_directories = {directory.file("run")};
    control.part = job_services(settings)(control);
    thread_ = std::thread([this] { control.loop().run(); });
    in_loop([this] {
      control.tell(event::AttemptBegan{0});
      control.tell(event::ProcessStarted{1, ::getpid(), 0, monotonic_ns()});
    });
    const auto until = std::chrono::steady_clock::now() + kDeadline;
    while (list_jobs({directory.file("run")}).empty()) {
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }
  ~Host() {
    control.loop().stop();
    thread_.join();
    control.part.reset();
  }

  /// Runs `action` in the loop, and waits for it.
  void in_loop(std::function<void()> action) {
    std::promise<void> done;
    boost::asio::post(control.loop(), [&] {
      action();
      done.set_value();
    });
    REQUIRE(done.get_future().wait_for(kDeadline) == std::future_status::ready);
  }

  JobEntry entry() const { return select_job(list_jobs({directory.file("run")}), std::nullopt); }

  TempDir directory;
  FakeControl control;

 private:
  static Plan plan_in(const std::string& log_dir, RestartScope trainers) {
    Plan plan = job_plan(2, 1, log_dir);
    plan.roles[1].restart = trainers;
    plan.restart.budgets.fill(trainers == RestartScope::nobody ? 0 : 3);
    return plan;
  }

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

/// The next line, waited for; empty when the other side has closed.
std::string wait_for_line(ControlClient& client) {
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  for (;;) {
    if (auto line = client.next_line()) return *line;
    if (!client.read_more()) return {};
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

/// Sends bytes as they are; false when the other side has closed.
bool send_raw(const ControlClient& client, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(client.descriptor(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) {
      std::this_thread::yield();
      continue;
    }
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

TEST_CASE("a job that runs is found and says how it is") {
  Host host;
  struct stat info = {};
  REQUIRE(::stat((host.directory.file("run") + "/abcdef.sock").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  ControlClient client(host.entry());
  const JobStatus status = job_status_from_json(status_in(client.ask(R"({"request":"status"})")));
  CHECK(status.pod == "abcdef");
  CHECK(status.processes.size() == 3);
  CHECK(status.processes[1].state == ProcessState::running);
  CHECK(status.processes[1].usage.has_value());
  // One connection can ask again.
  CHECK(job_status_from_json(status_in(client.ask(R"({"request":"status"})"))).pod == "abcdef");
  CHECK(host.control.warnings.empty());
}

TEST_CASE("stop, signal, restart and stacks reach the supervisor") {
  Host host(RestartScope::group);
  ControlClient client(host.entry());
  client.ask(R"({"request":"signal","signal":"USR1","role":"trainer"})");
  client.ask(R"({"request":"restart","role":"trainer","rank":0})");
  CHECK_THROWS_WITH_AS(client.ask(R"({"request":"restart","role":"trainer","rank":1})"),
                       "trainer 1 does not run", Error);
  CHECK_THROWS_WITH_AS(
      client.ask(R"({"request":"restart","role":"server","rank":0})"),
      "server 0 would not be started again: the job was begun without restarts (--max_restart)", Error);
  client.ask(R"({"request":"stop"})");
  client.ask(R"({"request":"stop","now":true})");
  host.in_loop([&] {
    CHECK(host.control.signals ==
          std::vector<std::pair<std::size_t, int>>{{1, SIGUSR1}, {2, SIGUSR1}, {1, SIGKILL}});
    CHECK(host.control.stops == std::vector<bool>{false, true});
  });
  CHECK(client.ask(R"({"request":"stacks"})", kDeadline).find("trainer 0") != std::string::npos);
}

TEST_CASE("a stop with a grace kills when it has passed, and asking twice changes nothing") {
  Host host;
  ControlClient client(host.entry());
  client.ask(to_json(StopRequest{false, 20ms, SIGINT}));
  host.in_loop([&] {
    CHECK(host.control.signals ==
          std::vector<std::pair<std::size_t, int>>{{0, SIGINT}, {1, SIGINT}, {2, SIGINT}});
    host.control.tell(event::StopBegan{"asked to", {1}});
  });
  client.ask(R"({"request":"stop"})");
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  for (bool killed = false; !killed; std::this_thread::yield()) {
    host.in_loop([&] { killed = host.control.stops == std::vector<bool>{false, true}; });
    REQUIRE(std::chrono::steady_clock::now() < until);
  }
}

TEST_CASE("what is wrong with a request is said, and the connection goes on") {
  Host host;
  ControlClient client(host.entry());
  CHECK_THROWS_WITH_AS(client.ask(R"({"request":"jump"})"), "request jump is not known", Error);
  CHECK_THROWS_AS(client.ask("\x01\x02garbage\xff"), Error);
  CHECK_THROWS_WITH_AS(client.ask(R"({"request":"stop","nwo":true})"), "a stop request has no field nwo",
                       Error);
  CHECK(client.ask(R"({"request":"status"})").starts_with("{\"ok\":true"));
}

TEST_CASE("an attached client is sent the events from then on, to the last") {
  Host host;
  ControlClient client(host.entry());
  CHECK(client.ask(R"({"request":"attach"})").starts_with("{\"ok\":true,\"status\":"));
  host.in_loop([&] {
    host.control.tell(event::Warning{"mind the gap"});
    host.control.tell(event::JobEnded{3});
  });
  const std::string warning = wait_for_line(client), end = wait_for_line(client);
  CHECK(warning.find("\"type\":\"warning\",\"text\":\"mind the gap\"},\"level\":\"WARNING\",\"text\":\"mind "
                     "the gap\"}") != std::string::npos);
  CHECK(end.find("\"type\":\"job_ended\",\"exit_status\":3}") != std::string::npos);
  CHECK(wait_for_line(client) == "");
  CHECK(std::filesystem::is_empty(host.directory.file("run")));
  std::ifstream events(host.directory.file("log/abcdef/events.jsonl"));
  std::string text{std::istreambuf_iterator<char>(events), {}};
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
}

TEST_CASE("an attached client that does not read is cut off, and the loop goes on") {
  Host host;
  ControlClient stuck(host.entry());
  stuck.ask(R"({"request":"attach"})");
  const std::string big(65'536, 'x');
  host.in_loop([&] {
    for (int i = 0; i < 200; ++i) host.control.tell(event::Warning{big});
  });
  ControlClient other(host.entry());
  CHECK(other.ask(R"({"request":"status"})").starts_with("{\"ok\":true"));
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  while (stuck.read_more()) REQUIRE(std::chrono::steady_clock::now() < until);
}

TEST_CASE("a fleetrun that is not stopped may answer late, within limits") {
  Host host;
  std::promise<void> asked;
  boost::asio::post(host.control.loop(), [&] { asked.get_future().wait_for(kDeadline); });
  ControlClient client(host.entry());
  try {
    client.ask(R"({"request":"status"})", 10ms);
    FAIL("the loop is busy");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).ends_with("has not answered within 60 ms"));
    CHECK(error.hint().find("very busy") != std::string::npos);
  }
  asked.set_value();
  CHECK(ControlClient(host.entry()).ask(R"({"request":"status"})").starts_with("{\"ok\":true"));
}

TEST_CASE("a request without end is refused after 64 KiB") {
  Host host;
  ControlClient client(host.entry());
  std::size_t sent = 0;
  const std::string piece(16'384, 'x');
  while (sent < (std::size_t{1} << 30) && send_raw(client, piece)) sent += piece.size();
  CHECK(sent < (std::size_t{1} << 24));
  ControlClient other(host.entry());
  CHECK(other.ask(R"({"request":"status"})").starts_with("{\"ok\":true"));
}

TEST_CASE("idle clients do not keep others out for ever: there are at most 32, and each has its time") {
  TempDir directory;
  const Plan plan = job_plan(1);
  Recorder handler;
  boost::asio::io_context loop{1};
  JobEntry job;
  job.pod = "abcdef";
  const RunEntry entry({directory.file("run")}, job);
  ControlLimits limits;
  limits.clients = 2;
  limits.patience = 50ms;
  const auto server = start_control(
      loop, entry, plan, handler, [] { return std::string("{}"); }, limits);
  std::thread thread([&] { loop.run(); });
  {
    ControlClient first(entry.entry()), second(entry.entry());
    REQUIRE(send_raw(second, "{\"request\""));
    // Each is cut off, the one that says nothing and the one that never ends its line.
    CHECK(wait_for_line(first) == "");
    CHECK(wait_for_line(second) == "");
    ControlClient third(entry.entry());
    CHECK(third.ask(R"({"request":"status"})", kDeadline) == "{\"ok\":true,\"status\":{}}");
  }
  loop.stop();
  thread.join();
}

TEST_CASE("another user is turned away") {
  if (::geteuid() != 0) return;
  Host host;
  std::filesystem::permissions(host.directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(host.directory.file("run"), std::filesystem::perms(0755));
  const std::string path = host.directory.file("run") + "/abcdef.sock";
  std::filesystem::permissions(path, std::filesystem::perms(0666));  // what keeps them out otherwise
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(12345) != 0 || ::setuid(12345) != 0) ::_exit(3);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(2);
    const char request[] = "{\"request\":\"stop\"}\n";
    (void)!::send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
    char byte;
    ::_exit(::recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  host.in_loop([&] { CHECK(host.control.stops.empty()); });
}

TEST_CASE("a job without a safe directory runs unseen, with a warning") {
  TempDir directory;
  FakeControl control(job_plan(1, 0, directory.file("log")));
  ServiceSettings settings;
  settings.run_directories = {directory.file("none/run")};
  control.part = job_services(settings)(control);
  control.tell(event::ProcessStarted{0, 1, 0, 1});
  control.loop().run();
  REQUIRE(control.warnings.size() == 1);
  CHECK(control.warnings[0] == "fleetrun status, stop and attach will not find this job: " +
                                   directory.file("none/run") + " cannot be made: No such file or directory");
  CHECK(std::filesystem::exists(directory.file("log/abcdef/events.jsonl")));
}

TEST_CASE("nothing is made before something has started") {
  TempDir directory;
  FakeControl control(job_plan(1, 0, directory.file("log")));
  ServiceSettings settings;
  settings.run_directories = {directory.file("run")};
  control.part = job_services(settings)(control);
  control.tell(event::AttemptBegan{0});
  control.loop().run();
  CHECK(std::filesystem::is_empty(directory.path()));
  control.tell(event::ProcessStarted{0, 1, 0, 1});
  control.part.reset();
  control.loop().restart();
  control.loop().run();  // what was posted is of something that is gone
  CHECK(!std::filesystem::exists(directory.file("run")));
}
