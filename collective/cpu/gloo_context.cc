#include "collective/cpu/gloo_context.h"

#include <utility>

#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

namespace fleetrun::collective {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::config, "an algorithm of Gloo's that needs its own connections");
}

class LinkBuffer : public gloo::transport::UnboundBuffer {
 public:
  LinkBuffer(RankLinks& links, const WaitUntil& wait, void* data, std::size_t bytes)
      : UnboundBuffer(data, bytes), links_(links), wait_(wait) {}
  ~LinkBuffer() override { links_.withdraw(completions_); }

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    links_.send(to, slot, static_cast<std::byte*>(ptr) + offset, length(offset, bytes), completions_);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    links_.receive(from, slot, static_cast<std::byte*>(ptr) + offset, length(offset, bytes), completions_);
  }
  void recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) override { refuse(); }

  bool waitRecv(int*, std::chrono::milliseconds) override {
    wait_([this] { return completions_.receives > received_; });
    ++received_;
    return true;
  }
  bool waitSend(int*, std::chrono::milliseconds) override {
    wait_([this] { return completions_.sends > sent_; });
    ++sent_;
    return true;
  }
  void abortWaitRecv() override {}
  void abortWaitSend() override {}

 private:
  std::size_t length(std::size_t offset, std::size_t bytes) const {
    return bytes == kUnspecifiedByteCount ? size - offset : bytes;
  }

  RankLinks& links_;
  const WaitUntil& wait_;
  Completions completions_;
  std::size_t received_ = 0, sent_ = 0;
};

class NoAddress : public gloo::transport::Address {
 public:
  std::string str() const override { return "a rank"; }
  std::vector<char> bytes() const override { return {}; }
};

/// Only says that there is a connection.
class LinkPair : public gloo::transport::Pair {
 public:
  const gloo::transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>&) override { refuse(); }
  void close() override {}
  void setSync(bool, bool) override { refuse(); }
  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, std::size_t) override { refuse(); }
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, std::size_t) override { refuse(); }
  void send(gloo::transport::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override { refuse(); }
  void recv(gloo::transport::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override { refuse(); }

 private:
  NoAddress address_;
};

class LinkTransport : public gloo::transport::Context {
 public:
  LinkTransport(RankLinks& links, WaitUntil wait)
      : Context(links.place().rank, links.place().size), links_(links), wait_(std::move(wait)) {
    for (int other = 0; other < size; ++other) createPair(other);
  }

  std::unique_ptr<gloo::transport::Pair>& createPair(int other) override {
    auto& pair = pairs_.at(static_cast<std::size_t>(other));
    if (other != rank) pair = std::make_unique<LinkPair>();
    return pair;
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      std::size_t bytes) override {
    return std::make_unique<LinkBuffer>(links_, wait_, data, bytes);
  }

 private:
  RankLinks& links_;
  const WaitUntil wait_;
};

class LinkContext : public gloo::Context {
 public:
  LinkContext(RankLinks& links, WaitUntil wait) : Context(links.place().rank, links.place().size) {
    transportContext_ = std::make_shared<LinkTransport>(links, std::move(wait));
  }
};

}  // namespace

std::shared_ptr<gloo::Context> make_gloo_context(RankLinks& links, WaitUntil wait) {
  return std::make_shared<LinkContext>(links, std::move(wait));
}

}  // namespace fleetrun::collective
