#include "dataset/schema/field_lines.h"

#include <cstring>

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
constexpr std::size_t kMinRoom = std::size_t{64} << 10;

}  // namespace

FieldLines::FieldLines(char delimiter) : delimiter_(delimiter), buffer_(kBufferBytes + kScanPadding) {
  begin_input();
}

void FieldLines::begin_input() noexcept {
  begin_ = end_ = 0;
  lines_done_ = 0;
  fields_done_ = 1;
  line_number_ = 0;
  carriage_return_ = false;
  ends_.fields.assign(1, static_cast<std::uint32_t>(-1));
  ends_.lines.clear();
}

std::span<char> FieldLines::room() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    ends_.fields.erase(ends_.fields.begin() + 1,
                       ends_.fields.begin() + static_cast<std::ptrdiff_t>(fields_done_));
    for (std::uint32_t& end : std::span(ends_.fields).subspan(1)) end -= static_cast<std::uint32_t>(begin_);
    ends_.lines.clear();
    lines_done_ = 0;
    fields_done_ = 1;
    carriage_return_ = false;
    begin_ = 0;
  }
  if (buffer_.size() - kScanPadding - end_ < kMinRoom) buffer_.resize(2 * buffer_.size());
  return {buffer_.data() + end_, buffer_.size() - kScanPadding - end_};
}

void FieldLines::commit(std::size_t bytes) {
  find_ends(buffer_.data(), end_, end_ + bytes, delimiter_, ends_);
  end_ += bytes;
}

void FieldLines::end_input() {
  if (!has_partial_line()) return;
  room().front() = '\n';
  commit(1);
}

bool FieldLines::has_partial_line() const noexcept {
  return lines_done_ == ends_.lines.size() && begin_ < end_;
}

void FieldLines::drop_waiting() noexcept {
  if (carriage_return_) ++ends_.fields[fields_done_ - 1];
  carriage_return_ = false;
  fields_done_ = ends_.fields.size();
  begin_ = end_;
}

bool FieldLines::next() noexcept {
  if (lines_done_ == ends_.lines.size()) return false;
  if (carriage_return_) ++ends_.fields[fields_done_ - 1];
  const std::size_t last = ends_.lines[lines_done_++];
  first_ = fields_done_;
  fields_ = last + 1 - first_;
  fields_done_ = last + 1;
  line_begin_ = begin_;
  line_end_ = ends_.fields[last];
  begin_ = line_end_ + 1;
  carriage_return_ = line_end_ > line_begin_ && buffer_[line_end_ - 1] == '\r';
  if (carriage_return_) ends_.fields[last] = static_cast<std::uint32_t>(--line_end_);
  ++line_number_;
  return true;
}

}  // namespace fleetrun::dataset
