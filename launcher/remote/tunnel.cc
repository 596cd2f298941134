#include "launcher/remote/tunnel.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/still_here.h"

namespace fleetrun::launcher::remote {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxUnsent = 64 << 20;       // for an end that takes nothing: it is given up
constexpr std::chrono::milliseconds kBreath{100};  // before another accept, when no descriptors are left

/// One connection's end here. Owned by its operations, and by who keeps it.
class TunnelStream : public std::enable_shared_from_this<TunnelStream> {
 public:
  /// `done` is called once, when the connection has ended here.
  TunnelStream(tcp::socket socket, std::function<void(std::string_view)> send, std::function<void()> done)
      : socket_(std::move(socket)), send_(std::move(send)), done_(std::move(done)) {}

  void begin() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    connected_ = true;
    read();
    write();
  }

  void connect(const tcp::endpoint& target) {
    socket_.async_connect(target, [self = shared_from_this()](const error_code& error) {
      if (error) return self->end();
      self->begin();
    });
  }

  void take(std::string_view bytes) {
    if (pending_.size() > kMaxUnsent) return end();
    pending_.append(bytes);
    if (connected_) write();
  }

  /// What has come is written, then it is closed.
  void finish() {
    finishing_ = true;
    done_ = nullptr;
    if (writing_.empty() && pending_.empty()) drop();
  }

  void drop() {
    done_ = nullptr;
    send_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void read() {
    socket_.async_read_some(boost::asio::buffer(block_),
                            [self = shared_from_this()](const error_code& error, std::size_t count) {
                              if (error) return self->end();
                              if (self->send_) self->send_({self->block_.data(), count});
                              self->read();
                            });
  }

  void write() {
    if (!writing_.empty() || pending_.empty()) return;
    writing_.swap(pending_);
    boost::asio::async_write(socket_, boost::asio::buffer(writing_),
                             [self = shared_from_this()](const error_code& error, std::size_t) {
                               self->writing_.clear();
                               if (error) return self->end();
                               self->write();
                               if (self->finishing_ && self->writing_.empty()) self->drop();
                             });
  }

  void end() {
    if (const auto done = std::exchange(done_, nullptr)) done();
    drop();
  }

  tcp::socket socket_;
  std::function<void(std::string_view)> send_;
  std::function<void()> done_;
  std::string pending_, writing_;
  std::array<char, 64 << 10> block_{};
  bool connected_ = false, finishing_ = false;
};

}  // namespace

class Tunnel::Side {
 public:
  Side(boost::asio::io_context& loop, SendMessage send)
      : loop_(loop), send_(std::move(send)), acceptor_(loop), breath_(loop) {}
  ~Side() {
    for (const auto& [number, stream] : streams_) stream->drop();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  Endpoint open_entrance() {
    error_code error;
    acceptor_.open(tcp::v4(), error);
    if (!error) acceptor_.bind({boost::asio::ip::address_v4::loopback(), 0}, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error)
      throw Error(ErrorKind::host, "it is impossible to listen at 127.0.0.1: " + error.message(),
                  "the loopback interface has to be up: ip link set lo up");
    accept();
    return {"127.0.0.1", acceptor_.local_endpoint().port()};
  }

  void dial(std::uint32_t number, const Endpoint& target) {
    if (streams_.contains(number)) return;
    error_code error;
    const auto address = boost::asio::ip::make_address(target.host, error);
    if (error) return send_(Hangup{number});
    begin(number, tcp::socket(loop_))->connect({address, target.port});
  }

  std::shared_ptr<TunnelStream> find(std::uint32_t number) const {
    const auto stream = streams_.find(number);
    return stream == streams_.end() ? nullptr : stream->second;
  }
  void forget(std::uint32_t number) { streams_.erase(number); }

 private:
  void accept() {
    acceptor_.async_accept(still_here_.only([this](const error_code& error, auto socket) {
      if (error == boost::asio::error::operation_aborted) return;
      if (error) return accept_later();
      const std::uint32_t number = next_++;
      send_(Dial{number});
      begin(number, std::move(socket))->begin();
      accept();
    }));
  }

  void accept_later() {
    breath_.expires_after(kBreath);
    breath_.async_wait(still_here_.only([this](const error_code& error) {
      if (!error) accept();
    }));
  }

  std::shared_ptr<TunnelStream> begin(std::uint32_t number, tcp::socket socket) {
    return streams_[number] = std::make_shared<TunnelStream>(
               std::move(socket),
               [this, number](std::string_view bytes) {
                 send_(Bytes{number, std::string(bytes)});
               },
               [this, number] {
                 send_(Hangup{number});
                 streams_.erase(number);
               });
  }

  boost::asio::io_context& loop_;
  SendMessage send_;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer breath_;
  std::map<std::uint32_t, std::shared_ptr<TunnelStream>> streams_;
  std::uint32_t next_ = 1;
  StillHere still_here_;
};

Tunnel::Tunnel(boost::asio::io_context& loop, SendMessage send)
    : side_(std::make_unique<Side>(loop, std::move(send))) {}
Tunnel::~Tunnel() = default;

Endpoint Tunnel::open_entrance() {
  return side_->open_entrance();
}

void Tunnel::on(const Dial& dial, const Endpoint& target) {
  side_->dial(dial.stream, target);
}

void Tunnel::on(const Bytes& bytes) {
  if (const auto stream = side_->find(bytes.stream)) stream->take(bytes.bytes);
}

void Tunnel::on(const Hangup& hangup) {
  const auto stream = side_->find(hangup.stream);
  side_->forget(hangup.stream);
  if (stream) stream->finish();
}

}  // namespace fleetrun::launcher::remote
