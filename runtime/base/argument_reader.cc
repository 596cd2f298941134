#include "runtime/base/argument_reader.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun {

void ArgumentReader::refuse(const std::string& what) const {
  throw Error(ErrorKind::usage, what, hint_);
}

bool ArgumentReader::next() {
  if (at_ == words_.size()) return false;
  word_ = words_[at_++];
  value_.reset();
  if (!is_over_ && word_ == "--") {
    is_over_ = true;
    return next();
  }
  is_flag_ = !is_over_ && word_.size() > 1 && word_[0] == '-';
  if (!is_flag_) return true;
  if (const std::size_t equals = word_.find('='); equals != std::string::npos) {
    value_ = word_.substr(equals + 1);
    word_.resize(equals);
  }
  std::replace(word_.begin() + std::min<std::ptrdiff_t>(2, std::ssize(word_)), word_.end(), '-', '_');
  return true;
}

bool ArgumentReader::is_switch(std::string_view name) const {
  if (word_ != name) return false;
  if (value_) refuse(word_ + " takes no value");
  return true;
}

std::string ArgumentReader::value() {
  if (value_) return *value_;
  if (at_ == words_.size()) refuse(word_ + " needs a value");
  return words_[at_++];
}

std::int64_t ArgumentReader::number(std::int64_t min) {
  const std::string text = value();
  const auto number = parse_integer(text);
  if (!number || *number < min)
    refuse(word_ + "=" + printable(text) + " is not a whole number from " + std::to_string(min) + " on");
  return *number;
}

}  // namespace fleetrun
