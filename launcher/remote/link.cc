#include "launcher/remote/link.h"

#include <signal.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>

#include "launcher/remote/ssh_command.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher::remote {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kBlock = 64 << 10;
constexpr std::size_t kMaxSaid = 16 << 10;  // the end of standard error
constexpr int kBlocksPerTurn = 16;          // then others have the loop

/// Handlers hold the link's insides, so that its owner may drop the link in a listener's call.
class Pipes : public std::enable_shared_from_this<Pipes> {
 public:
  Pipes(asio::io_context& loop, const CommandLine& line, LinkListener& listener, Unwrap unwrap)
      : listener_(&listener),
        unwrap_(std::move(unwrap)),
        decoder_(kLongestReport, true),
        command_(start_command(line)),
        input_(loop),
        output_(loop),
        error_(loop),
        ended_(loop) {
    if (command_.input) input_.assign(command_.input.release());
    output_.assign(command_.output.release());
    error_.assign(command_.error.release());
    ended_.assign(command_.ended.release());
  }

  void begin() {
    read_output();
    read_error();
    ended_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const error_code& error) {
                        if (!error) self->on_ended();
                      });
  }

  /// Nobody listens any more.
  void abandon() {
    listener_ = nullptr;
    error_code ignored;
    input_.close(ignored);
    output_.close(ignored);
    error_.close(ignored);
    kill();
    // The command has been killed: it is waited for by the handler of its end,
    // while the loop runs, and by init else.
  }

  void send(const Addressed& frame) { send_bytes(encode(frame)); }

  void send_bytes(std::string_view bytes) {
    if (!input_.is_open() || closing_) return;
    pending_.append(bytes);
    write();
  }

  void close_input() {
    closing_ = true;
    if (writing_.empty() && pending_.empty()) shut();
  }

  void kill() {
    if (!is_over_) ::kill(command_.kill_target, SIGKILL);
  }

  void set_reading(bool reading) {
    if (std::exchange(wants_, reading) == reading || !reading) return;
    read_output();
  }

  std::size_t waiting() const { return pending_.size() + writing_.size(); }

 private:
  void shut() {
    error_code ignored;
    input_.close(ignored);
  }

  void write() {
    if (!writing_.empty() || pending_.empty()) return;
    writing_.swap(pending_);
    write_rest();
  }

  void write_rest() {
    input_.async_write_some(asio::buffer(writing_.data() + written_, writing_.size() - written_),
                            [self = shared_from_this()](const error_code& error, std::size_t count) {
                              self->on_written(error, count);
                            });
  }

  void on_written(const error_code& error, std::size_t count) {
    if (error) {  // the other end is gone, which its end says
      writing_.clear();
      pending_.clear();
      return shut();
    }
    written_ += count;
    if (written_ < writing_.size()) return write_rest();
    writing_.clear();
    written_ = 0;
    if (!pending_.empty()) return write();
    if (closing_) return shut();
    if (listener_) listener_->on_room();
  }

  void read_output() {
    if (reading_ || !wants_ || !output_.is_open()) return;
    reading_ = true;
    output_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         self->reading_ = false;
                         if (error || !self->listener_) return;
                         if (self->take_output(kBlocksPerTurn) != Taken::everything && self->listener_)
                           self->read_output();
                       });
  }

  enum class Taken {
    some,
    all_there_is,
    everything
  };  // everything: the end, or nobody is interested any more

  Taken take_output(int blocks) {
    char bytes[kBlock];
    for (; blocks > 0 && output_.is_open(); --blocks) {
      const ssize_t count = ::read(output_.native_handle(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return Taken::all_there_is;
      if (count <= 0) return Taken::everything;
      if (!deliver({bytes, static_cast<std::size_t>(count)})) return Taken::everything;
    }
    return Taken::some;
  }

  bool deliver(std::string_view bytes) {
    try {
      if (unwrap_)
        decoder_.append(unwrap_(bytes));
      else
        decoder_.append(bytes);
      while (listener_) {
        if (decoder_.take_wish()) listener_->on_wish();
        auto frame = decoder_.next();
        if (!frame) return true;
        const auto self = shared_from_this();  // the listener may let go of us
        listener_->on_frame(std::move(*frame));
      }
    } catch (const Error& error) {
      garbled_ = error.what();
      kill();
    }
    return false;
  }

  void read_error() {
    if (!error_.is_open()) return;
    error_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const error_code& error) {
                        if (!error && self->take_error()) self->read_error();
                      });
  }

  bool take_error() {
    char bytes[4096];
    while (error_.is_open()) {
      const ssize_t count = ::read(error_.native_handle(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) return false;
      said_.append(bytes, static_cast<std::size_t>(count));
      if (said_.size() > 2 * kMaxSaid) said_.erase(0, said_.size() - kMaxSaid);
    }
    return false;
  }

  /// What it wrote before it ended is in the pipes.
  void on_ended() {
    is_over_ = true;
    const int status = exit_status_of(command_);
    if (!listener_) return;
    if (garbled_.empty()) {
      const auto self = shared_from_this();
      while (listener_ && take_output(1) == Taken::some) {
      }
    }
    if (error_.is_open()) take_error();
    if (last_line(said_).empty()) said_ = decoder_.noise();  // nologin says why on its output
    error_code ignored;
    input_.close(ignored);
    output_.close(ignored);
    error_.close(ignored);
    if (listener_) std::exchange(listener_, nullptr)->on_closed(status, said_, garbled_);
  }

  LinkListener* listener_;
  Unwrap unwrap_;
  ChannelDecoder decoder_;
  Command command_;
  asio::posix::stream_descriptor input_, output_, error_, ended_;
  std::string pending_, writing_, said_, garbled_;
  std::size_t written_ = 0;
  bool closing_ = false, is_over_ = false, wants_ = true, reading_ = false;
};

class PipedLink final : public Link {
 public:
  PipedLink(asio::io_context& loop, const CommandLine& line, LinkListener& listener, Unwrap unwrap)
      : pipes_(std::make_shared<Pipes>(loop, line, listener, std::move(unwrap))) {
    pipes_->begin();
  }
  ~PipedLink() override { pipes_->abandon(); }

  void send(const Addressed& frame) override { pipes_->send(frame); }
  void send_bytes(std::string_view bytes) override { pipes_->send_bytes(bytes); }
  void close_input() override { pipes_->close_input(); }
  void kill() override { pipes_->kill(); }
  void set_reading(bool reading) override { pipes_->set_reading(reading); }
  std::size_t waiting() const override { return pipes_->waiting(); }

 private:
  std::shared_ptr<Pipes> pipes_;  // with the handlers that wait
};

}  // namespace

std::unique_ptr<Link> start_link(asio::io_context& loop, const CommandLine& command, LinkListener& listener,
                                 Unwrap unwrap) {
  return std::make_unique<PipedLink>(loop, command, listener, std::move(unwrap));
}

}  // namespace fleetrun::launcher::remote
