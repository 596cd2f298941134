// An HTTP/1.1 answer as it arrives, in pieces of any size. Pure: it sees bytes, no sockets.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace fleetrun::launcher {

class HttpAnswer {
 public:
  /// `max_bytes`: of a body; 0: without end, for one that is taken while it comes.
  explicit HttpAnswer(std::size_t max_bytes);
  ~HttpAnswer();

  /// Throws: Error(network) for what is not an HTTP answer, or one that is too large.
  void take(std::string_view bytes);
  /// The connection has ended. Throws: Error(network) when the answer is not whole.
  void end();

  /// 0 until the head is there.
  int status() const noexcept;
  bool is_whole() const noexcept;
  /// What has come of the body since the last call.
  std::string take_body();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace fleetrun::launcher
