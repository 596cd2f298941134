#include "launcher/init/init_protocol.h"

#include <cstring>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

constexpr int kLevels = 3;
constexpr std::uint32_t kMaxBytes = 64u << 20;  // above any argument list that execve accepts

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  void list(const std::vector<std::string>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values) text(value);
  }
  void numbers(const std::vector<std::int32_t>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const std::int32_t value : values) number(value);
  }
  void flag(bool value) { number(static_cast<std::uint8_t>(value)); }
  /// 0: nullopt; else the level and 1.
  void level(const std::optional<ContainmentLevel>& value) {
    number(static_cast<std::uint8_t>(value ? static_cast<int>(*value) + 1 : 0));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  std::vector<std::string> list() {
    const auto count = number<std::uint32_t>();
    if (count > bytes_.size() / sizeof(std::uint32_t)) refuse();
    std::vector<std::string> values;
    for (std::uint32_t i = 0; i < count; ++i) values.push_back(text());
    return values;
  }
  std::vector<std::int32_t> numbers() {
    const auto count = number<std::uint32_t>();
    if (count > bytes_.size() / sizeof(std::int32_t)) refuse();
    std::vector<std::int32_t> values;
    for (std::uint32_t i = 0; i < count; ++i) values.push_back(number<std::int32_t>());
    return values;
  }
  bool flag() { return number<std::uint8_t>() != 0; }
  std::optional<ContainmentLevel> level() {
    const auto value = number<std::uint8_t>();
    if (value > kLevels) refuse();
    if (value == 0) return std::nullopt;
    return static_cast<ContainmentLevel>(value - 1);
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }
  [[noreturn]] static void refuse() {
    throw Error(ErrorKind::data, "fleetrun and fleetrun-init do not understand each other");
  }

 private:
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) refuse();
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  std::string_view bytes_;
};

void write(Writer& out, const SetupFrame& f) {
  out.text(f.pod_name);
  out.list(f.remove_files);
  out.list(f.remove_directories);
  out.number(f.open_files);
  out.level(f.containment);
  out.level(f.required);
}
void write(Writer& out, const StartFrame& f) {
  out.number(f.index);
  out.text(f.program);
  out.list(f.argv);
  out.list(f.environment);
  out.text(f.cwd);
  out.flag(f.has_stdin);
  out.numbers(f.passed);
  out.numbers(f.cpus);
  out.numbers(f.memory_nodes);
  out.flag(f.alone);
}
void write(Writer& out, const SignalFrame& f) {
  out.number(f.index);
  out.number(f.number);
  out.flag(f.resume);
}
void write(Writer& out, const SweepFrame& f) {
  out.number(f.index);
}
void write(Writer&, const FinishFrame&) {}
void write(Writer& out, const ContainedFrame& f) {
  out.text(f.level);
  out.text(f.cgroup);
  out.text(f.reason);
  out.number(f.init_pid);
}
void write(Writer& out, const StartedFrame& f) {
  out.number(f.index);
  out.number(f.pid);
  out.number(f.time_ns);
}
void write(Writer& out, const FailedFrame& f) {
  out.number(f.index);
  out.text(f.stage);
  out.number(f.error);
}
void write(Writer& out, const ExitedFrame& f) {
  out.number(f.index);
  out.number(f.pid);
  out.number(f.wait_status);
  out.number(f.time_ns);
  out.number(f.max_rss_kib);
}
void write(Writer& out, const SweptFrame& f) {
  out.number(f.index);
}
void write(Writer& out, const UnkillableFrame& f) {
  out.number(f.pid);
  out.text(f.name);
  out.text(f.state);
  out.text(f.where);
}
void write(Writer&, const EmptiedFrame&) {}

// A braced list is evaluated from left to right, so the fields are read in the order in which they were
// written.
Frame read(std::uint8_t type, Reader& in) {
  using U32 = std::uint32_t;
  using I32 = std::int32_t;
  using I64 = std::int64_t;
  switch (type) {
    case 0:
      return SetupFrame{in.text(), in.list(), in.list(), in.number<std::uint64_t>(), in.level(), in.level()};
    case 1:
      return StartFrame{in.number<U32>(), in.text(),    in.list(),    in.list(),    in.text(),
                        in.flag(),        in.numbers(), in.numbers(), in.numbers(), in.flag()};
    case 2:
      return SignalFrame{in.number<U32>(), in.number<I32>(), in.flag()};
    case 3:
      return SweepFrame{in.number<U32>()};
    case 4:
      return FinishFrame{};
    case 5:
      return ContainedFrame{in.text(), in.text(), in.text(), in.number<I32>()};
    case 6:
      return StartedFrame{in.number<U32>(), in.number<I32>(), in.number<I64>()};
    case 7:
      return FailedFrame{in.number<U32>(), in.text(), in.number<I32>()};
    case 8:
      return ExitedFrame{in.number<U32>(), in.number<I32>(), in.number<I32>(), in.number<I64>(),
                         in.number<I64>()};
    case 9:
      return SweptFrame{in.number<U32>()};
    case 10:
      return UnkillableFrame{in.number<I32>(), in.text(), in.text(), in.text()};
    case 11:
      return EmptiedFrame{};
    default:
      Reader::refuse();
  }
}

}  // namespace

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
  Writer body;
  body.number(static_cast<std::uint8_t>(frame.index()));
  std::visit([&](const auto& f) { write(body, f); }, frame);
  Writer whole;
  whole.text(body.take());
  return whole.take();
}

std::optional<Frame> FrameDecoder::next() {
  std::uint32_t length = 0;
  if (buffer_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, buffer_.data(), sizeof length);
  if (length == 0 || length > kMaxBytes) Reader::refuse();
  if (buffer_.size() < sizeof length + length) return std::nullopt;
  Reader in(std::string_view(buffer_).substr(sizeof length, length));
  const auto type = in.number<std::uint8_t>();
  Frame frame = read(type, in);
  in.end();
  buffer_.erase(0, sizeof length + length);
  return frame;
}

}  // namespace fleetrun::launcher
