#include "dataset/text/line_prefixes.h"

#include <charconv>

namespace fleetrun::dataset {
namespace {

template <class T>
bool read_digits(std::string_view digits, T& value) noexcept {
  const char* end = digits.data() + digits.size();
  return std::from_chars(digits.data(), end, value, 16).ptr == end;
}

}  // namespace

bool read_log_key(std::string_view token, LogKey& key) noexcept {
  LogKey read;
  std::uint64_t head = 0;
  if (token.size() < 32 || !read_digits(token.substr(0, 11), head) ||
      !read_digits(token.substr(11, 3), read.cmatch) || !read_digits(token.substr(14, 2), read.rank) ||
      !read_digits(token.substr(16, 16), read.search_id))
    return false;
  key = read;
  return true;
}

}  // namespace fleetrun::dataset
