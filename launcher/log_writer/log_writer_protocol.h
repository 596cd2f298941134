// What fleetrun and fleetrun-log say to each other, over a socket that keeps messages apart (SOCK_SEQPACKET).
// Both are of one build, so that structures travel as they are.
//
//   fleetrun → fleetrun-log  OpenLog, then the texts of the place, each ended by a zero byte; with it, as a
//                            descriptor, the end of a pipe to read from
//                            SettleLogs: answer when what is in the pipes now has been written
//   fleetrun-log → fleetrun  LogNews: how much was lost so far, whenever that changes; or the answer
//                            to SettleLogs
//                            LogNews of the kind `lost`, then the end of what was dropped of this log: before
//                            the answer to SettleLogs
//
// fleetrun closes its side for writing when no process lives any more. fleetrun-log ends when that has
// happened and the last pipe has ended, or some seconds later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/log_writer/log_writer.h"

namespace fleetrun::launcher {

enum class LogMessage : std::uint32_t { open, settle, news, settled, lost };

struct OpenLog {
  LogMessage kind = LogMessage::open;
  std::uint32_t index = 0;  // of the process, for the news
  std::uint64_t cap = 0;
  std::int32_t keep = 0;
  std::uint32_t reserved = 0;
};

struct SettleLogs {
  LogMessage kind = LogMessage::settle;
};

struct LogNews {
  LogMessage kind = LogMessage::news;
  std::uint32_t index = 0;
  std::uint64_t dropped = 0, removed = 0;  // bytes, of this log since it was opened
  std::int32_t error = 0;                  // why they were dropped
  std::uint32_t reserved = 0;
};

constexpr std::size_t kLongestLogMessage = 32 * 1024;
constexpr int kLogWriterSocket = 3;  // fleetrun-log finds its socket there

/// OpenLog with its texts.
std::string encode_open(std::uint32_t index, const LogPlace& place, const LogLimits& limits);

struct OpenedLog {
  std::uint32_t index = 0;
  LogPlace place;
  LogLimits limits;
};

/// Nothing where `message` is not whole.
std::optional<OpenedLog> decode_open(std::string_view message);

/// The kind of a message; nothing for one that is too short.
std::optional<LogMessage> kind_of(std::string_view message) noexcept;

}  // namespace fleetrun::launcher
