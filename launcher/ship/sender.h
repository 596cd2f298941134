// The files that a host lacks, in pieces, as it can take them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "launcher/ship/read_tree.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::ship {

class Sender {
 public:
  Sender(std::shared_ptr<const Cargo> cargo, std::vector<Range> wanted);

  /// nullopt: that was all. Throws: Error(host) for a file that cannot be read, or is shorter than it was.
  std::optional<Piece> next();

  std::uint64_t sent() const noexcept { return sent_; }
  std::uint64_t total() const noexcept { return total_; }

 private:
  bool open_next();

  std::shared_ptr<const Cargo> cargo_;
  std::vector<Range> wanted_;  // backwards
  UniqueFd file_;
  std::uint32_t item_ = 0;
  std::uint64_t left_ = 0, sent_ = 0, total_ = 0;
};

}  // namespace fleetrun::launcher::ship
