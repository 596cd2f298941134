#include "launcher/ship/sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::ship {
namespace {

constexpr std::uint64_t kPiece = 256 << 10;

}  // namespace

Sender::Sender(std::shared_ptr<const Cargo> cargo, std::vector<Range> wanted)
    : cargo_(std::move(cargo)), wanted_(std::move(wanted)) {
  const auto& items = cargo_->list.items;
  for (Range& range : wanted_) {
    range.first = std::min(range.first, static_cast<std::uint32_t>(items.size()));
    range.second = std::min(range.second, static_cast<std::uint32_t>(items.size()) - range.first);
    for (std::uint32_t i = 0; i < range.second; ++i) total_ += items[range.first + i].size;
  }
  std::reverse(wanted_.begin(), wanted_.end());
}

bool Sender::open_next() {
  while (!wanted_.empty() && wanted_.back().second == 0) wanted_.pop_back();
  if (wanted_.empty()) return false;
  item_ = wanted_.back().first++;
  --wanted_.back().second;
  const std::string& source = cargo_->sources.at(item_);
  file_.reset(
      check_errno(::open(source.c_str(), O_RDONLY | O_CLOEXEC), "open", "sending " + printable(source)));
  left_ = cargo_->list.items[item_].size;
  return true;
}

std::optional<Piece> Sender::next() {
  if (!file_ && !open_next()) return std::nullopt;
  Piece piece{item_, std::string(std::min(left_, kPiece), '\0')};
  for (std::size_t got = 0; got < piece.bytes.size();) {
    const ssize_t count = ::read(file_.value(), piece.bytes.data() + got, piece.bytes.size() - got);
    if (count < 0 && errno == EINTR) continue;
    const std::string& source = cargo_->sources[item_];
    check_errno(count < 0 ? -1 : 0, "read", "sending " + printable(source));
    if (count == 0)
      throw Error(ErrorKind::host, printable(source) + " became shorter while it was sent",
                  "start the job when nobody writes there, or leave it out: --ship_exclude=NAME");
    got += static_cast<std::size_t>(count);
  }
  left_ -= piece.bytes.size();
  sent_ += piece.bytes.size();
  if (left_ == 0) file_.reset();
  return piece;
}

}  // namespace fleetrun::launcher::ship
