// What a client may ask of a server; ps/base/wire.h says what travels with each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fleetrun::ps::wire {

enum class Method : std::uint16_t {
  hello,
  attend,
  goodbye,
  pull,
  push,
  set_dense,
  begin_epoch,
  leave_epoch,
  barrier,
  all_reduce,
  rows,
  save_begin,
  save_part,
  save_commit,
  save_end,
  load_prepare,
  load_commit,
  load_abort,
  stat,
  pull_touched,
  get,
  shrink,
  save_freeze,
  save_settle,
  take_staleness,
  keep_pace,
  save_text,
  assign,
  measure,
  who_waits,
  follow,
  hand_back,
};
inline constexpr std::size_t kMethodCount =
    static_cast<std::size_t>(Method::hand_back) + 1;  // the last one's
std::string_view to_string(Method method) noexcept;

}  // namespace fleetrun::ps::wire
