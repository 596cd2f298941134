// init's end of the lifeline: frames and descriptors in, frames out. Single-threaded.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "launcher/init/init_protocol.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class InitLifeline {
 public:
  /// `socket` is borrowed.
  explicit InitLifeline(int socket) noexcept : socket_(socket) {}

  int socket() const noexcept { return socket_; }

  /// Reads what there is, descriptors included, without waiting. False at the end of the lifeline.
  bool receive();

  /// The next whole frame that was received. Throws: Error(data), see FrameDecoder.
  std::optional<Frame> next() { return decoder_.next(); }

  /// The next descriptor that was received. Throws: Error(data) when there is none.
  UniqueFd take_descriptor();

  /// Frames are collected until flush(), so that a burst of them wakes fleetrun once.
  void send(const Frame& frame) { outgoing_.append(encode(frame)); }

  /// Closes the socket and what was received over it: it is for another process that has both.
  void abandon();

  /// Sends what was collected; what fleetrun, being gone, does not take is dropped.
  void flush();

 private:
  int socket_;
  FrameDecoder decoder_;
  std::deque<UniqueFd> descriptors_;
  std::string outgoing_;
};

}  // namespace fleetrun::launcher
