#include "launcher/remote/host_output.h"

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <optional>
#include <utility>

#include "launcher/logs/line_formatter.h"
#include "launcher/logs/log_output.h"
#include "runtime/base/terminal_text.h"

namespace fleetrun::launcher::remote {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxHeld = 4 << 20;
constexpr std::size_t kLongestLine = 64 << 10;  // a longer one is shown in pieces
constexpr std::chrono::seconds kPatience{10};

class Output final : public HostOutput {
 public:
  Output(asio::io_context& loop, HostOutputSettings settings)
      : loop_(loop),
        settings_(std::move(settings)),
        output_(settings_.output),
        formatter_(output_.is_terminal()),
        partial_(settings_.names.size()),
        writable_(loop),
        patience_(loop) {}

  void take(std::uint32_t host, std::string_view bytes) override {
    if (output_.gone() || host >= partial_.size()) return;
    if (settings_.raw) {
      take_raw(host, bytes);
      return write();
    }
    std::string& partial = partial_[host];
    for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      add_line(host, partial, bytes.substr(0, end));
      partial.clear();
    }
    partial.append(bytes);
    if (partial.size() > kLongestLine) add_line(host, std::exchange(partial, {}), {});
    write();
  }

  void end(std::uint32_t host) override {
    if (stream_) {
      stream_->end(held_);
      return write();
    }
    if (host >= partial_.size() || partial_[host].empty()) return;
    add_line(host, std::exchange(partial_[host], {}), {});
    write();
  }

  void hurry() override {
    if (!std::exchange(hurried_, true) && !held_.empty()) wait_for_reader();
  }

  void drain(std::function<void()> done) override {
    done_ = std::move(done);
    hurried_ = true;
    if (held_.empty() || output_.gone()) return finish();
    wait_for_reader();
  }

 private:
  void take_raw(std::uint32_t host, std::string_view bytes) {
    if (!output_.is_terminal()) {
      held_.append(bytes);
      return;
    }
    if (!stream_) stream_.emplace(TerminalText::Mark{settings_.names[host] + " | "});
    stream_->add(bytes, held_);
    stream_->pause(held_);
  }

  void add_line(std::uint32_t host, std::string_view first, std::string_view rest) {
    formatter_.begin(settings_.names[host] + ":", held_);
    formatter_.add(first, held_);
    formatter_.add(rest, held_);
    formatter_.end(held_);
  }

  void write() {
    if (waiting_) return watch_size();
    std::size_t written = 0;
    while (written < held_.size()) {
      const std::size_t count = output_.write(std::string_view(held_).substr(written));
      if (count == 0) break;
      written += count;
    }
    held_.erase(0, written);
    if (output_.gone()) return give_up();
    if (hurried_ && (written > 0 || !waited_for_)) wait_for_reader();
    if (held_.empty()) patience_.cancel();
    waited_for_ = !held_.empty();
    if (!held_.empty()) await_output();
    watch_size();
    if (held_.empty() && done_) finish();
  }

  void watch_size() {
    const bool full = held_.size() > (holding_ ? kMaxHeld / 4 : kMaxHeld);
    if (std::exchange(holding_, full) != full) settings_.hold(full);
  }

  void await_output() {
    error_code failed;
    if (!writable_.is_open()) writable_.assign(::fcntl(output_.descriptor(), F_DUPFD_CLOEXEC, 3), failed);
    if (failed) return give_up();
    waiting_ = true;
    writable_.async_wait(asio::posix::stream_descriptor::wait_write, [this](const error_code& error) {
      if (error) return;
      waiting_ = false;
      write();
    });
  }

  void wait_for_reader() {
    patience_.expires_after(kPatience);
    patience_.async_wait([this](const error_code& error) {
      if (!error) give_up();
    });
  }

  void give_up() {
    output_.give_up();
    held_.clear();
    error_code ignored;
    writable_.close(ignored);
    watch_size();
    finish();
  }

  void finish() {
    patience_.cancel();
    if (done_) asio::post(loop_, std::exchange(done_, nullptr));
  }

  asio::io_context& loop_;
  HostOutputSettings settings_;
  LogOutput output_;
  LineFormatter formatter_;
  std::optional<TerminalText> stream_;  // for bytes on a terminal
  std::vector<std::string> partial_;
  std::string held_;
  asio::posix::stream_descriptor writable_;
  asio::steady_timer patience_;
  bool waiting_ = false, waited_for_ = false, holding_ = false, hurried_ = false;
  std::function<void()> done_;
};

}  // namespace

std::unique_ptr<HostOutput> show_hosts(asio::io_context& loop, HostOutputSettings settings) {
  return std::make_unique<Output>(loop, std::move(settings));
}

}  // namespace fleetrun::launcher::remote
