#include "launcher/init/init_lease.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/init/process_table.h"

namespace fleetrun::launcher {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;  // in a second
constexpr std::int64_t kLook = kNanoseconds / 2;      // for what was forked while the others were stopped

/// Goes on while the host sleeps.
std::int64_t boot_ns() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kNanoseconds + now.tv_nsec;
}

}  // namespace

InitLease::InitLease() : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {}

/// 0: never.
void InitLease::arm(std::int64_t when) const {
  itimerspec next = {};
  next.it_value = {when / kNanoseconds, when % kNanoseconds};
  ::timerfd_settime(timer_.value(), TFD_TIMER_ABSTIME, &next, nullptr);
}

bool InitLease::renew(const LeaseFrame& lease) {
  lease_ = lease;
  const bool stands = lease.stands_ns != 0 && lease.stands_ns <= boot_ns();
  arm(stands || lease.stands_ns == 0 ? lease.ends_ns : lease.stands_ns);
  return !stands && go_on();
}

InitLease::Due InitLease::due() {
  std::uint64_t rings = 0;
  (void)!::read(timer_.value(), &rings, sizeof rings);
  const std::int64_t now = boot_ns();
  if (lease_.ends_ns != 0 && now >= lease_.ends_ns) {
    lease_ = {};
    arm(0);
    stopped_.clear();
    still_ = false;
    return Due::ends;
  }
  if (lease_.stands_ns == 0 || now < lease_.stands_ns) return Due::nothing;
  arm(lease_.ends_ns == 0 ? now + kLook : std::min(lease_.ends_ns, now + kLook));
  return Due::stands;
}

bool InitLease::stand_still(const std::vector<pid_t>& processes) {
  for (const pid_t pid : processes) {
    const std::string state = state_of(pid).state;
    if (state == "T" || state == "t" || state == "Z" || ::kill(pid, SIGSTOP) != 0) continue;
    stopped_.insert(pid);
  }
  return !std::exchange(still_, true);
}

bool InitLease::go_on() {
  for (const pid_t pid : std::exchange(stopped_, {})) ::kill(pid, SIGCONT);
  return std::exchange(still_, false);
}

}  // namespace fleetrun::launcher
