// A connection on which both ends have proved the job's secret. Between hosts everything on it is in records
// (runtime/secure/record_layer); on one host, and with --insecure, bytes go as they are. Whoever uses it does
// not see the difference. It does not block.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/unique_fd.h"
#include "runtime/secure/record_layer.h"

namespace fleetrun {

/// Threads: one at a time.
class SealedSocket {
 public:
  SealedSocket() = default;
  /// `early`: what came right behind the proof.
  SealedSocket(UniqueFd connection, std::optional<RecordLayer> records, std::string early = {});

  explicit operator bool() const noexcept { return bool(connection_); }
  int fd() const noexcept { return connection_.value(); }
  bool is_sealed() const noexcept { return records_.has_value(); }
  /// The other end's address, without its port.
  std::string peer_host() const;
  /// Lets it end within 15 s when the other end is gone without a word: its host is off, or cut off.
  void end_when_silent() noexcept;

  /// Takes bytes to be sent: as many as it says, -1 and errno (EAGAIN) where there is no room at present.
  /// Of what it took some may still wait here: see has_output().
  ssize_t send(std::span<const iovec> parts);
  /// Takes all of them, however many wait.
  void queue(std::string_view bytes);
  /// Sends what waits, as far as the kernel takes it. False when the connection has ended.
  bool flush();
  bool has_output() const noexcept { return queued() > 0; }
  std::size_t queued() const noexcept { return output_.size() - output_at_; }

  /// As recv(): 0 at the end, -1 and errno (EAGAIN) where nothing is there.
  /// Throws: Error(data) for what the other end has not sent.
  ssize_t receive(std::span<std::byte> into);
  /// Something came that was not handed out: poll() does not know of it.
  bool has_input() const noexcept { return !input_.empty() || (records_ && records_->has_opened()); }

  /// The connection itself, of one that is not sealed; `early` becomes what came with the proof.
  UniqueFd take_plain(std::string& early);

 private:
  UniqueFd connection_;
  std::optional<RecordLayer> records_;
  std::string input_, output_;  // came, and was not handed out; waits to be sent
  std::size_t input_at_ = 0, output_at_ = 0;
};

}  // namespace fleetrun
