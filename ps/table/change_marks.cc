#include "ps/table/change_marks.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// So many exports can be followed; before that somebody has given up.
constexpr std::size_t kMarks = 1 << 16;

}  // namespace

ChangeWindow ChangeMarks::mark(const Changes& changes) {
  const std::lock_guard lock(mutex_);
  const auto since = begun_.find(changes.since);
  if (changes.since != 0 && since == begun_.end())
    throw Error(ErrorKind::config,
                "there is no export " + std::to_string(changes.since) + " of these tables to go on from",
                "they were loaded, or the server started, after it: begin with an export of all rows");
  if (begun_.contains(changes.number))
    throw Error(ErrorKind::config, "there is an export " + std::to_string(changes.number) + " already");
  const ChangeWindow window{changes.since == 0 ? 0 : since->second, ++last_};
  begun_[changes.number] = last_;
  if (begun_.size() > kMarks)
    begun_.erase(std::ranges::min_element(begun_, {}, [](const auto& mark) { return mark.second; }));
  return window;
}

bool ChangeMarks::has(const Changes& changes) const {
  if (changes.since == 0) return false;
  const std::uint64_t mine = number();
  if (mine == changes.number) return true;
  if (mine == changes.since) return false;
  throw Error(
      ErrorKind::config,
      "the export has the changes since number " + std::to_string(changes.since) + "; these tables " +
          (mine == 0 ? "are of no export, or were changed since" : "are of number " + std::to_string(mine)),
      "load an export of all rows, and those after it in their order");
}

}  // namespace fleetrun::ps
