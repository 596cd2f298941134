// Files are looked at again every few milliseconds while they grow, and less often when they do not. inotify
// would say when, but closing its descriptor waits until the kernel's worker for all watches of the machine
// is idle (fsnotify_destroy_group): several timer ticks at best, and minutes while other programs open and
// close watches. The end of a job must not wait for them. One block is read at a time, in turn from each file
// that has something; its lines are written before the next is read. A line that is not in one block is found
// first (LineSplitter) and then copied from the file in pieces, during which no other line is shown.
#include "launcher/logs/log_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

#include "launcher/logs/line_formatter.h"
#include "launcher/logs/log_output.h"
#include "launcher/logs/log_source.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kViewPatience{10};    // with a reader that takes nothing, once the job is over
constexpr std::chrono::milliseconds kFirstLook{30};  // a job that is over at once is shown at its end
// Between two looks: each one in vain makes the next pause an eighth longer.
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{250};
constexpr std::chrono::milliseconds kFramePause{100};  // between two frames of a progress bar
constexpr std::size_t kBlock = 256 * 1024;
constexpr std::size_t kFull = 64 * 1024;  // formatted text is written at this size
constexpr int kBlocksPerTurn = 4;         // then others have the loop
constexpr off_t kLongestFrame = 4096;
constexpr std::size_t kLinesAfterFailure = 40, kBytesAfterFailure = 64 * 1024;
constexpr const char* kColours[] = {"36", "33", "35", "32", "34", "31", "96", "93", "95", "92", "94", "91"};

struct Viewed {
  explicit Viewed(std::string prefix) : source(std::move(prefix)) {}
  LogSource source;
  std::string path;  // of its newest log, for a process that is shown after it failed
  off_t start = 0;
  Showing showing = Showing::never;
  bool ready = false, ended = false;
  LineSpan painted;  // the frame that was shown last
};

/// A line that is copied from its file in pieces.
struct LongLine {
  Viewed* process = nullptr;
  LineSpan left;
};

/// What tells the lines of the process that is shown as it is from fleetrun's own.
std::string mark_of(const std::vector<ViewedProcess>& processes) {
  const auto shown = std::find_if(processes.begin(), processes.end(), [](const ViewedProcess& process) {
    return process.showing != Showing::never && !process.name.empty();
  });
  return (shown == processes.end() ? "process" : shown->name) + " | ";
}

class View final : public LogView {
 public:
  View(asio::io_context& loop, std::vector<ViewedProcess> processes, const ViewSettings& settings)
      : loop_(loop),
        raw_(settings.raw),
        patient_(settings.waits_for_ever),
        output_(settings.output),
        formatter_(output_.is_terminal()),
        stream_(raw_ && output_.is_terminal() ? std::optional(TerminalText::Mark{mark_of(processes)})
                                              : std::nullopt),
        block_(kBlock, '\0'),
        writable_(loop),
        poll_(loop),
        frames_(loop),
        patience_(loop) {
    std::size_t widest = 0;
    for (const ViewedProcess& process : processes) {
      if (process.showing != Showing::never) widest = std::max(widest, process.name.size());
    }
    for (std::size_t i = 0; i < processes.size(); ++i) {
      std::string name = processes[i].name;
      if (!name.empty() && !settings.bare) name.resize(std::max(widest, name.size()), ' ');
      if (!name.empty() && settings.colour)
        name = std::string("\x1b[") + kColours[i % std::size(kColours)] + "m" + name + "\x1b[0m";
      auto process = std::make_unique<Viewed>(name.empty() || settings.bare ? name : name + " | ");
      process->showing = processes[i].showing;
      processes_.push_back(std::move(process));
    }
    poll_.expires_after(kFirstLook);
    poll_.async_wait([this](const error_code& error) {
      if (error || on_drained_) return;
      begin_watching();
    });
  }

  void attach(std::size_t index, const std::string& path, off_t start) override {
    Viewed& process = *processes_[index];
    process.path = path;
    process.start = start;
    if (process.showing == Showing::always) show(process, start);
  }

  void ended(std::size_t index, bool failed) override {
    Viewed& process = *processes_[index];
    if (process.showing == Showing::after_failure && failed)
      show(process, std::max(process.start,
                             start_of_last_lines(process.path, kLinesAfterFailure, kBytesAfterFailure)));
    process.ended = true;
    process.ready = true;
    resume();
  }

  int problem() const noexcept override { return output_.problem(); }

  void drain(std::function<void()> on_done) override {
    on_drained_ = std::move(on_done);
    if (output_.gone()) return finish_drain();
    poll_.cancel();
    for (auto& process : processes_) process->ready = process->ended = true;
    arm_patience();
    watching_ = true;
    resume();
  }

 private:
  // Watching.

  void show(Viewed& process, off_t start) {
    process.source.append(process.path, start);
    process.ended = false;
    process.ready = true;
    resume();
  }

  void begin_watching() {
    watching_ = true;
    for (auto& process : processes_) process->ready = true;
    resume();
  }

  void look_again_later() {
    if (std::exchange(polling_, true)) return;
    poll_.expires_after(pause_);
    pause_ = std::min(pause_ + pause_ / 8, kLongestPause);
    poll_.async_wait([this](const error_code& error) {
      if (error) return;
      polling_ = false;
      for (auto& process : processes_) process->ready = true;
      resume();
    });
  }

  // Showing. What runs is step() after step(), until nothing is ready or the output takes nothing.

  void resume() {
    if (!watching_ || std::exchange(posted_, true)) return;
    asio::post(loop_, [this] {
      posted_ = false;
      advance();
    });
  }

  void advance() {
    if (waiting_) return;
    for (int turn = 0; turn < kBlocksPerTurn; ++turn) {
      if (!flush()) return;
      if (long_line_.process) {
        copy_long_line();
        continue;
      }
      Viewed* process = next_ready();
      if (!process) return finish_turn();
      step(*process);
    }
    resume();
  }

  Viewed* next_ready() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      turn_ = (turn_ + 1) % processes_.size();
      if (processes_[turn_]->ready) return processes_[turn_].get();
    }
    return nullptr;
  }

  /// Shows one block of what the process wrote, or what there is to do at the end of it.
  void step(Viewed& process) {
    LineSplitter& lines = process.source.lines();
    const off_t offset = lines.position();
    const std::size_t count = process.source.read(block_.data(), raw_ ? kFull : kBlock, offset);
    if (count == 0) return at_end(process);
    pause_ = kShortestPause;
    std::string_view bytes(block_.data(), count);
    if (raw_ && stream_) {
      lines = LineSplitter(offset + static_cast<off_t>(count));
      stream_->add(bytes, text_);
      stream_->pause(text_);
      return;
    }
    if (raw_) {
      const std::size_t written = output_.write(bytes);
      lines = LineSplitter(offset + static_cast<off_t>(written));
      if (written > 0) took_some();
      if (written < count) await_output();
      return;
    }
    while (!bytes.empty()) {
      const auto line = lines.next(bytes);
      if (!line) continue;
      if (line->begin < offset) {
        long_line_ = {&process, *line};
        begin_line(process);
        return;
      }
      begin_line(process);
      formatter_.add(
          {block_.data() + (line->begin - offset), static_cast<std::size_t>(line->end - line->begin)}, text_);
      formatter_.end(text_);
      if (text_.size() >= kFull && !flush()) return;
    }
  }

  void at_end(Viewed& process) {
    LogSource& source = process.source;
    if (source.restart_if_cut()) return;
    const bool goes_on = source.has_next();
    if (goes_on || process.ended) {
      const auto rest = source.lines().unfinished();
      const off_t position = source.lines().position();
      if (rest) source.lines() = LineSplitter(position);
      if (rest && !raw_) {
        begin_line(process);
        long_line_ = {&process, *rest};
        return;
      }
      if (stream_) stream_->end(text_);
      if (goes_on && source.advance()) return;
      if (stream_ && !flush()) return;
    }
    process.ready = false;
    if (source.is_open() && !on_drained_) look_again_later();
  }

  void begin_line(Viewed& process) {
    erase_frame();
    process.painted = {};
    formatter_.begin(process.source.prefix(), text_);
  }

  void copy_long_line() {
    LineSpan& left = long_line_.left;
    const auto max = static_cast<std::size_t>(std::min<off_t>(left.end - left.begin, kFull));
    const std::size_t count = long_line_.process->source.read(block_.data(), max, left.begin);
    formatter_.add({block_.data(), count}, text_);
    left.begin += static_cast<off_t>(count);
    if (count > 0 && left.begin < left.end) return;
    formatter_.end(text_);
    long_line_ = {};
  }

  // Progress bars on a terminal.

  void paint_soon() {
    const bool any = std::any_of(processes_.begin(), processes_.end(),
                                 [](const auto& process) { return process->source.lines().repainted(); });
    if (raw_ || !any || std::exchange(painting_, true)) return;
    frames_.expires_after(kFramePause);
    frames_.async_wait([this](const error_code& error) {
      if (error) return;
      painting_ = false;
      if (!waiting_ && !long_line_.process) paint_frame();
    });
  }

  /// The progress bar of the first process that has one.
  void paint_frame() {
    for (auto& process : processes_) {
      const auto frame = process->source.lines().unfinished();
      if (!frame || !process->source.lines().repainted()) continue;
      if (process->painted == *frame && frame_is_shown_) return;
      process->painted = *frame;
      const auto max = static_cast<std::size_t>(std::min(frame->end - frame->begin, kLongestFrame));
      const std::size_t count = process->source.read(block_.data(), max, frame->begin);
      LineFormatter guarded(true);
      std::string line;
      guarded.begin(process->source.prefix(), line);
      guarded.add({block_.data(), count}, line);
      guarded.end(line, "");
      erase_frame();
      text_.append(cut_to_columns(line, output_.columns() - 1));
      frame_is_shown_ = true;
      flush();
      return;
    }
  }

  void erase_frame() {
    if (std::exchange(frame_is_shown_, false)) text_.append("\r\x1b[K");
  }

  // Output.

  /// False: what was formatted could not be written yet.
  bool flush() {
    while (written_ < text_.size()) {
      const std::size_t count = output_.write(std::string_view(text_).substr(written_));
      if (count == 0) {
        await_output();
        return false;
      }
      written_ += count;
      took_some();
    }
    text_.clear();
    written_ = 0;
    return true;
  }

  void took_some() {
    if (on_drained_) arm_patience();
  }

  void await_output() {
    if (output_.gone()) return give_up();
    waiting_ = true;
    error_code failed;
    if (!writable_.is_open()) writable_.assign(::fcntl(output_.descriptor(), F_DUPFD_CLOEXEC, 3), failed);
    if (failed) return give_up();
    writable_.async_wait(asio::posix::stream_descriptor::wait_write, [this](const error_code& error) {
      if (error) return;
      waiting_ = false;
      resume();
    });
  }

  void arm_patience() {
    if (patient_) return;
    patience_.expires_after(kViewPatience);
    patience_.async_wait([this](const error_code& error) {
      if (!error) give_up();
    });
  }

  /// Nobody reads any more.
  void give_up() {
    output_.give_up();
    waiting_ = true;  // for good: nothing is shown again
    error_code ignored;
    writable_.close(ignored);
    poll_.cancel();
    frames_.cancel();
    patience_.cancel();
    finish_drain();
  }

  /// Everything that was written has been shown.
  void finish_turn() {
    if (on_drained_) {
      erase_frame();
      if (flush()) finish_drain();
    } else if (output_.is_terminal()) {
      paint_soon();
    }
  }

  void finish_drain() {
    if (!on_drained_) return;
    patience_.cancel();
    frames_.cancel();
    asio::post(loop_, std::exchange(on_drained_, nullptr));
  }

  asio::io_context& loop_;
  bool raw_, patient_;
  LogOutput output_;
  LineFormatter formatter_;
  std::optional<TerminalText> stream_;  // for bytes on a terminal
  std::vector<std::unique_ptr<Viewed>> processes_;
  std::size_t turn_ = 0;
  LongLine long_line_;
  std::string block_, text_;
  std::size_t written_ = 0;  // of text_
  std::chrono::milliseconds pause_ = kShortestPause;
  bool frame_is_shown_ = false;
  bool watching_ = false, posted_ = false, waiting_ = false, polling_ = false, painting_ = false;
  asio::posix::stream_descriptor writable_;
  asio::steady_timer poll_, frames_, patience_;
  std::function<void()> on_drained_;
};

}  // namespace

std::unique_ptr<LogView> view_logs(asio::io_context& loop, std::vector<ViewedProcess> processes,
                                   const ViewSettings& settings) {
  return std::make_unique<View>(loop, std::move(processes), settings);
}

}  // namespace fleetrun::launcher
