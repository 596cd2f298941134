#include "launcher/init/init_protocol.h"

#include "runtime/base/codec.h"

namespace fleetrun::launcher {
namespace {

constexpr int kLevels = 3;
constexpr std::uint32_t kMaxBytes = 64u << 20;  // above any argument list that execve accepts

}  // namespace

// One function per frame: the fields in the order of their bytes. `m` is const for a Writer.
template <class A, class M>
void fields(A& a, M& m, const ContainmentLevel*) {
  codec::choice(a, m, kLevels - 1);
}
template <class A, class M>
void fields(A& a, M& m, const SetupFrame*) {
  a(m.pod_name, m.remove_files, m.remove_directories, m.open_files, m.containment, m.required);
}
template <class A, class M>
void fields(A& a, M& m, const StartFrame*) {
  a(m.index, m.program, m.argv, m.environment, m.cwd, m.has_stdin, m.controls_stdin, m.passed, m.cpus,
    m.memory_nodes, m.alone);
}
template <class A, class M>
void fields(A& a, M& m, const SignalFrame*) {
  a(m.index, m.number, m.resume);
}
template <class A, class M>
void fields(A& a, M& m, const SweepFrame*) {
  a(m.index);
}
template <class A, class M>
void fields(A& a, M& m, const FinishFrame*) {
  a(m.gently);
}
template <class A, class M>
void fields(A& a, M& m, const ContainedFrame*) {
  a(m.level, m.cgroup, m.reason, m.init_pid);
}
template <class A, class M>
void fields(A& a, M& m, const StartedFrame*) {
  a(m.index, m.pid, m.time_ns);
}
template <class A, class M>
void fields(A& a, M& m, const FailedFrame*) {
  a(m.index, m.stage, m.error);
}
template <class A, class M>
void fields(A& a, M& m, const ExitedFrame*) {
  a(m.index, m.pid, m.wait_status, m.time_ns, m.max_rss_kib);
}
template <class A, class M>
void fields(A& a, M& m, const SweptFrame*) {
  a(m.index);
}
template <class A, class M>
void fields(A& a, M& m, const UnkillableFrame*) {
  a(m.pid, m.name, m.state, m.where);
}
template <class A, class M>
void fields(A&, M&, const EmptiedFrame*) {}
template <class A, class M>
void fields(A& a, M& m, const LeaseFrame*) {
  a(m.stands_ns, m.ends_ns);
}
template <class A, class M>
void fields(A& a, M& m, const StandsFrame*) {
  a(m.still);
}
template <class A, class M>
void fields(A&, M&, const LapsedFrame*) {}
template <class A, class M>
void fields(A&, M&, const ToldToEndFrame*) {}
template <class A, class M>
void fields(A& a, M& m, const LeftRunningFrame*) {
  a(m.processes, m.others);
}

std::string_view to_string(ContainmentLevel level) noexcept {
  constexpr std::string_view kNames[kLevels] = {"subreaper", "cgroup2", "pidns"};
  return kNames[static_cast<int>(level)];
}

std::optional<ContainmentLevel> parse_containment_level(std::string_view text) noexcept {
  for (int i = 0; i < kLevels; ++i) {
    const auto level = static_cast<ContainmentLevel>(i);
    if (text == to_string(level)) return level;
  }
  return std::nullopt;
}

std::string encode(const Frame& frame) {
  codec::Writer body;
  body(frame);
  return codec::framed(body.take());
}

std::optional<Frame> FrameDecoder::next() {
  const std::optional<std::string_view> body = codec::first_frame(buffer_, 1, kMaxBytes);
  if (!body) return std::nullopt;
  codec::Reader reader(*body);
  Frame frame;
  reader(frame);
  reader.end();
  buffer_.erase(0, static_cast<std::size_t>(body->data() + body->size() - buffer_.data()));
  return frame;
}

}  // namespace fleetrun::launcher
