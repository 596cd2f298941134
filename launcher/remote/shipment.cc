#include "launcher/remote/shipment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr std::size_t kShipAhead = 1 << 20, kShipBlock = 256 << 10;

}  // namespace

ship::Launcher launcher_of(const ship::Cargo& cargo) {
  struct stat facts = {};
  check_errno(::stat(cargo.launcher.c_str(), &facts), "stat", "reading " + cargo.launcher);
  utsname system = {};
  ::uname(&system);
  return {ship::digest_of_file(cargo.launcher), static_cast<std::uint64_t>(facts.st_size), system.machine};
}

void Shipment::begin_launcher(Link& link) {
  launcher_.reset(check_errno(::open(cargo_->launcher.c_str(), O_RDONLY | O_CLOEXEC), "open",
                              "sending " + cargo_->launcher));
  go_on(link);
}

void Shipment::offer(Link& link) {
  link.send({host_, Offer{cargo_->list}});
}

void Shipment::begin_files(Link& link, const Wanted& wanted) {
  files_.emplace(cargo_, wanted.items);
  go_on(link);
}

void Shipment::go_on(Link& link) {
  while (launcher_ && link.waiting() < kShipAhead) {
    char block[kShipBlock];
    const ssize_t count = ::read(launcher_.value(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    check_errno(count < 0 ? -1 : 0, "read", "sending " + cargo_->launcher);
    if (count == 0) launcher_.reset();
    launcher_sent_ += static_cast<std::uint64_t>(count);
    link.send_bytes({block, static_cast<std::size_t>(count)});
  }
  while (files_ && link.waiting() < kShipAhead) {
    auto piece = files_->next();
    if (!piece) return;
    link.send({host_, std::move(*piece)});
  }
}

Progress Shipment::progress() const {
  if (!files_) return {launcher_sent_, launcher_sent_};
  return {launcher_sent_ + files_->sent(), launcher_sent_ + files_->total()};
}

}  // namespace fleetrun::launcher::remote
