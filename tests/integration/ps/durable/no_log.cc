// A build whose servers keep checkpoints and no log: kills.cc and moving.cc must fail with it.
#include "ps/durable/write_log.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace fleetrun::ps {

std::string log_path(const std::string& directory, std::uint64_t segment) {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "/log-%016" PRIx64, segment);
  return directory + name.data();
}

WriteLog::WriteLog(std::string directory, std::uint64_t segment, LogSync sync,
                   std::function<void(const Error&)> broken, DiskWatch* watch)
    : directory_(std::move(directory)),
      sync_(sync),
      broken_(std::move(broken)),
      watch_(watch),
      segment_(segment) {}
WriteLog::~WriteLog() = default;

void WriteLog::append(std::uint32_t, const BytePieces&) {}

void WriteLog::when_safe(std::function<void()> then) {
  then();
}

void WriteLog::abandon() {}

std::uint64_t WriteLog::rotate() {
  return ++segment_;
}

void WriteLog::sync_begun() {}

void WriteLog::finish() {}

std::uint64_t WriteLog::bytes() const {
  return 0;
}

}  // namespace fleetrun::ps
