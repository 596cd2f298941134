#include "cli/job_page.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "cli/ui_command.h"
#include "launcher/host/helper_child.h"
#include "launcher/ui/gate.h"
#include "launcher/ui/listener.h"
#include "launcher/ui/serve.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/process_end.h"

namespace fleetrun::cli {
namespace {

constexpr int kLongestEnd = 4'000;  // ms; longer than serve.h takes

/// Nothing of the job's stays open here: its leased ports, its logs, the ends of its pipes.
[[noreturn]] void serve(UniqueFd listener, UniqueFd job, const launcher::UiGate& gate,
                        launcher::UiSettings settings) noexcept {
  try {
    constexpr int kListener = STDERR_FILENO + 1, kJob = kListener + 1, kRest = kJob + 1;
    UniqueFd high_listener(::fcntl(listener.value(), F_DUPFD_CLOEXEC, kRest));
    UniqueFd high_job(::fcntl(job.value(), F_DUPFD_CLOEXEC, kRest));
    ::dup3(high_listener.value(), kListener, O_CLOEXEC);
    ::dup3(high_job.value(), kJob, O_CLOEXEC);
    for (UniqueFd* each : {&listener, &job, &high_listener, &high_job}) each->release();
    close_from(kRest);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);  // where somebody may wait for the end of the job's output
    ::dup2(null, STDERR_FILENO);
    settings.ends_with = UniqueFd(kJob);
    launcher::run_ui(UniqueFd(kListener), gate, std::move(settings), [] {});
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

JobPage::JobPage(const Endpoint& address, launcher::UiSettings settings) {
  launcher::UiListener listener = launcher::listen_for_ui(address, "--ui");
  const launcher::UiGate gate(listener.hosts, listener.port);
  url_ = gate.url();
  is_local_ = listener.is_local;
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe", "serving the page");
  UniqueFd job(ends[0]);
  job_.reset(ends[1]);
  const pid_t parent = ::getpid();
  pid_ = check_errno(::fork(), "fork", "serving the page");
  if (pid_ != 0) return;
  launcher::settle_child(parent);
  serve(std::move(listener.socket), std::move(job), gate, std::move(settings));
}

JobPage::~JobPage() {
  job_.reset();
  const UniqueFd ended = watch_end(pid_);
  pollfd waits{ended.value(), POLLIN, 0};
  while (::poll(&waits, 1, kLongestEnd) < 0 && errno == EINTR) {
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::unique_ptr<JobPage> serve_job_page(const Endpoint& address, launcher::UiSettings settings,
                                        LaunchLog& log) {
  auto page = std::make_unique<JobPage>(address, std::move(settings));
  if (!page->is_local()) log.warning(kPlainText);
  log.tell(kPage + page->url());
  return page;
}

}  // namespace fleetrun::cli
