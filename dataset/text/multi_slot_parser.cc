// One pass over the bytes, straight into the batch's vectors: no token list, no copy. Only whole lines are
// parsed, so a line feed ends every scan, and the buffer has kTextPadding bytes behind its last byte for the
// readers of eight digits. What the fast readers do not take goes to parse_slow(), which knows every form and
// words the faults.
#include "dataset/text/multi_slot_parser.h"

#include <string.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataset/text/number_text.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
constexpr std::size_t kMinRoom = std::size_t{64} << 10;
constexpr std::size_t kFirstRows = 1024;
constexpr std::size_t kFirstValues = std::size_t{1} << 20;  // of one slot, where its rows are wide

/// 'token', with every byte but printable ASCII as \xNN (a byte order mark or a no-break space would not
/// show), and cut where it is long.
std::string quoted(std::string_view token) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::size_t limit = 40;
  std::string text(1, '\'');
  for (const char byte : token.substr(0, limit)) {
    const auto value = static_cast<unsigned char>(byte);
    if (value > 0x20 && value < 0x7F)
      text += byte;
    else
      text.append("\\x").append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return text.append(token.size() > limit ? "…'" : "'");
}

bool has_nul(std::string_view token) noexcept {
  return token.find('\0') != std::string_view::npos;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

inline const char* skip_separators(const char* text) noexcept {
  while (is_separator(*text)) ++text;
  return text;
}

/// The entry of `row`, made if it is the next one.
template <class T>
T& entry(std::vector<T>& rows, std::size_t row) {
  if (rows.size() <= row) rows.resize(row + 1);
  return rows[row];
}

}  // namespace

/// A slot, and where its next value goes. `ints` or `floats` and `offsets` point into the batch's vectors.
struct MultiSlotParser::Column {
  std::string name;
  bool is_float = false;
  bool dense = false;
  std::uint64_t width = 1;
  bool in_batch = true;
  SlotValues* values = nullptr;
  std::int64_t* ints = nullptr;
  float* floats = nullptr;
  std::size_t* offsets = nullptr;
  std::size_t used = 0;
  std::size_t capacity = 0;

  /// Makes room for `wanted` values in all.
  void reserve(std::size_t wanted) {
    if (is_float) {
      values->floats.resize(std::max(wanted, values->floats.size()));
      floats = values->floats.data();
      capacity = values->floats.size();
    } else {
      values->ints.resize(std::max(wanted, values->ints.size()));
      ints = values->ints.data();
      capacity = values->ints.size();
    }
  }
  void reserve_rows(std::size_t rows) {
    reserve(dense ? rows * width : rows);
    if (dense) return;
    values->offsets.resize(std::max(rows + 1, values->offsets.size()));
    offsets = values->offsets.data();
  }
};

std::string to_string(const LineFault& fault) {
  std::string text = std::to_string(fault.line) + ":" + std::to_string(fault.column) + ": ";
  if (!fault.slot.empty()) text += "slot '" + fault.slot + "': ";
  return text + fault.what;
}

MultiSlotParser::MultiSlotParser(std::span<const Slot> slots, MultiSlotParserOptions options)
    : options_(options), buffer_(kBufferBytes + kTextPadding) {
  for (const Slot& slot : slots) {
    Column& column = columns_.emplace_back();
    column.name = slot.name;
    column.is_float = slot.type == SlotType::float32;
    column.dense = slot.dense;
    column.width = static_cast<std::uint64_t>(slot.width);
    column.in_batch = slot.used;
    if (slot.used) ++batch_slots_;
  }
}

MultiSlotParser::~MultiSlotParser() = default;

void MultiSlotParser::begin_input() noexcept {
  begin_ = end_ = lines_end_ = 0;
  line_ = 1;
  discarding_ = false;
}

std::span<char> MultiSlotParser::room() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    lines_end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - kTextPadding - end_ < kMinRoom) buffer_.resize(2 * buffer_.size());
  return {buffer_.data() + end_, buffer_.size() - kTextPadding - end_};
}

void MultiSlotParser::commit(std::size_t bytes) noexcept {
  const char* filled = buffer_.data() + end_;
  end_ += bytes;
  if (discarding_) {
    const void* feed = std::memchr(filled, '\n', bytes);
    begin_ = feed ? static_cast<std::size_t>(static_cast<const char*>(feed) + 1 - buffer_.data()) : end_;
    lines_end_ = begin_;
    if (!feed) return;
    discarding_ = false;
    ++line_;
  }
  if (const void* last = ::memrchr(filled, '\n', bytes))
    lines_end_ = static_cast<std::size_t>(static_cast<const char*>(last) - buffer_.data()) + 1;
}

void MultiSlotParser::end_input() {
  if (!has_partial_line()) return;
  room().front() = '\n';
  commit(1);
}

bool MultiSlotParser::has_partial_line() const noexcept {
  return end_ > std::max(begin_, lines_end_);
}

void MultiSlotParser::begin_batch(Batch& batch, std::size_t rows) {
  batch.rows = 0;
  batch.slots.resize(batch_slots_);
  batch_ = &batch;
  wanted_rows_ = rows;
  std::size_t widest = 1;
  for (const Column& column : columns_)
    if (column.in_batch && column.dense) widest = std::max(widest, column.width);
  row_capacity_ = std::min({rows, kFirstRows, std::max<std::size_t>(kFirstValues / widest, 1)});
  std::size_t slot = 0;
  for (Column& column : columns_) {
    if (!column.in_batch) continue;
    column.values = &batch.slots[slot++];
    column.used = 0;
    column.offsets = nullptr;
    column.reserve_rows(row_capacity_);
    if (!column.dense) column.offsets[0] = 0;
  }
}

void MultiSlotParser::skip_bad_line() noexcept {
  const void* feed = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
  discarding_ = !feed;
  if (feed) ++line_;
  begin_ = feed ? static_cast<std::size_t>(static_cast<const char*>(feed) + 1 - buffer_.data()) : end_;
  lines_end_ = std::max(lines_end_, begin_);
}

std::size_t MultiSlotParser::end_batch() {
  const std::size_t rows = batch_->rows;
  for (Column& column : columns_) {
    if (!column.in_batch) continue;
    const std::size_t values = column.dense ? rows * column.width : column.offsets[rows];
    column.values->floats.resize(column.is_float ? values : 0);
    column.values->ints.resize(column.is_float ? 0 : values);
    column.values->offsets.resize(column.dense ? 0 : rows + 1);
  }
  const LinePrefixes& asked = options_.prefixes;
  batch_->prefixes.ids.resize(asked.id || asked.log_key ? rows : 0);
  batch_->prefixes.contents.resize(asked.content ? rows : 0);
  batch_->prefixes.log_keys.resize(asked.log_key ? rows : 0);
  batch_ = nullptr;
  return rows;
}

MultiSlotParser::Outcome MultiSlotParser::parse() {
  while (begin_ < lines_end_) {
    if (batch_->rows == wanted_rows_) return Outcome::full;
    if (batch_->rows == row_capacity_) {
      row_capacity_ = std::min(wanted_rows_, 2 * row_capacity_);
      for (Column& column : columns_)
        if (column.in_batch) column.reserve_rows(row_capacity_);
    }
    line_start_ = buffer_.data() + begin_;
    const char* end = parse_row(line_start_);
    const char* line_end = end ? end : static_cast<const char*>(::rawmemchr(line_start_, '\n'));
    if (static_cast<std::size_t>(line_end - line_start_) > options_.max_line_bytes) end = fail_length();
    if (!end) {
      judge_first_line();
      return Outcome::bad;
    }
    ++batch_->rows;
    ++line_;
    begin_ = static_cast<std::size_t>(end + 1 - buffer_.data());
  }
  if (batch_->rows == wanted_rows_) return Outcome::full;
  line_start_ = buffer_.data() + begin_;
  if (end_ - begin_ > options_.max_line_bytes) {
    fail_length();
    judge_first_line();
    return Outcome::bad;
  }
  return Outcome::more;
}

/// The most frequent slot by far: one id of up to 7 digits, " 1 DIGITS" and a separator or line feed. Reads
/// nothing and returns false when `text` has anything else.
inline bool MultiSlotParser::take_one_id(Column& column, const char*& text, std::size_t row) noexcept {
  if (text[0] != ' ' || text[1] != '1' || text[2] != ' ') return false;
  const char* at = text + 3;
  const DigitRun run = leading_digits(at);
  const std::size_t index = column.dense ? row : column.offsets[row];
  if (run.digits - 1 >= 7 || !ends_token(at[run.digits]) || index == column.capacity || column.width != 1)
    return false;
  column.ints[index] = value_of(run);
  if (!column.dense) column.offsets[row + 1] = index + 1;
  text = at + run.digits;
  return true;
}

/// The line feed that ends the row, or nullptr with fault_ set. A row that fails leaves values behind the
/// batch's last row, where end_batch() cuts them off.
const char* MultiSlotParser::parse_row(const char* text) {
  const std::size_t row = batch_->rows;
  text = skip_separators(text);
  if (*text == '\n') return fail(text, nullptr, "the line is empty");
  if (options_.prefixes.any()) {
    text = parse_prefixes(text);
    if (!text) return nullptr;
  }
  for (Column& column : columns_) {
    if (!column.in_batch) {
      text = skip_unused(column, text);
      if (!text) return nullptr;
      continue;
    }
    if (!column.is_float && take_one_id(column, text, row)) continue;
    text = skip_separators(text);
    std::uint64_t count = 1;
    if (text[0] == '1' && ends_token(text[1])) {
      ++text;
    } else {
      text = parse_count(column, text, count);
      if (!text) return nullptr;
    }
    if (column.dense && count != column.width)
      return fail(text, &column,
                  counted(count, "value") + " where its width is " + std::to_string(column.width));
    column.used = column.dense ? row * column.width : column.offsets[row];
    text = column.is_float ? parse_values<read_short_float>(column, column.floats, text, count)
                           : parse_values<read_short_id>(column, column.ints, text, count);
    if (!text) return nullptr;
    if (!column.dense) column.offsets[row + 1] = column.used;
  }
  text = skip_separators(text);
  if (*text == '\n') return text;
  return fail(text, nullptr,
              "the line goes on with " + quoted(token_at(text)) + " after the last slot, '" +
                  columns_.back().name + "'");
}

const char* MultiSlotParser::parse_prefixes(const char* text) {
  RowPrefixes& prefixes = batch_->prefixes;
  const std::size_t row = batch_->rows;
  std::string_view token;
  if (options_.prefixes.id) {
    text = parse_prefix(text, "id", token);
    if (!text) return nullptr;
    entry(prefixes.ids, row) = token;
  }
  if (options_.prefixes.content) {
    text = parse_prefix(text, "content", token);
    if (!text) return nullptr;
    entry(prefixes.contents, row) = token;
  }
  if (options_.prefixes.log_key) {
    text = parse_prefix(text, "log key", token);
    if (!text) return nullptr;
    if (!read_log_key(token, entry(prefixes.log_keys, row)))
      return fail(token.data(), nullptr,
                  quoted(token) + " is not a log key of 32 or more hexadecimal digits");
    entry(prefixes.ids, row) = token;
  }
  return text;
}

/// Takes "1 TOKEN".
const char* MultiSlotParser::parse_prefix(const char* text, std::string_view kind, std::string_view& token) {
  text = skip_separators(text);
  token = token_at(text);
  if (token.empty()) return fail(text, nullptr, "the line ends before its " + std::string(kind));
  if (token != "1")
    return fail(text, nullptr, quoted(token) + " where '1' announces the line's " + std::string(kind));
  text = skip_separators(text + 1);
  token = token_at(text);
  if (token.empty()) return fail(text, nullptr, "the line ends before its " + std::string(kind));
  if (has_nul(token)) return fail(text, nullptr, quoted(token) + " has a NUL byte");
  return text + token.size();
}

/// Passes over a slot that nobody wants: as many tokens as it announces.
const char* MultiSlotParser::skip_unused(const Column& column, const char* text) {
  std::uint64_t count = 0;
  text = parse_count(column, skip_separators(text), count);
  if (!text) return nullptr;
  for (std::uint64_t i = 0; i < count; ++i) {
    text = skip_separators(text);
    const std::string_view token = token_at(text);
    if (token.empty())
      return fail(text, &column,
                  counted(count, "value") + " announced, the line ends after " + std::to_string(i));
    if (has_nul(token)) return fail(text, &column, quoted(token) + " has a NUL byte");
    text += token.size();
  }
  return text;
}

const char* MultiSlotParser::parse_count(const Column& column, const char* text, std::uint64_t& count) {
  const std::string_view token = token_at(text);
  if (token.empty()) return fail(text, &column, "the line ends before it");
  switch (read_count(token, count)) {
    case NumberFault::not_a_number:
      return fail(text, &column, quoted(token) + " is not a count of values");
    case NumberFault::out_of_range:
      return fail(text, &column, "the count " + quoted(token) + " does not fit 64 bits");
    case NumberFault::none:
      break;
  }
  if (count == 0) return fail(text, &column, "a count of 0; an example needs at least 1 value in each slot");
  return text + token.size();
}

template <auto read, class T>
const char* MultiSlotParser::parse_values(Column& column, T* const& values, const char* text,
                                          std::uint64_t count) {
  std::size_t used = column.used;
  for (std::uint64_t i = 0; i < count; ++i, ++used) {
    if (used == column.capacity) column.reserve(2 * used);  // moves what `values` points to, and `values`
    // A branch, where adding a comparison would do: the next number must not wait for this byte to be looked
    // at.
    if (*text == ' ' && !is_separator(text[1])) [[likely]]
      ++text;
    else
      text = skip_separators(text);
    const char* end = read(text, values[used]);
    if (!end) {
      end = parse_slow(column, text, used, i, count);
      if (!end) return nullptr;
    }
    text = end;
  }
  column.used = used;
  return text;
}

const char* MultiSlotParser::parse_slow(Column& column, const char* text, std::size_t at, std::uint64_t done,
                                        std::uint64_t count) {
  const std::string_view token = token_at(text);
  if (token.empty())
    return fail(text, &column,
                counted(count, "value") + " announced, the line ends after " + std::to_string(done));
  const NumberFault fault =
      column.is_float ? read_float(token, column.floats[at]) : read_id(token, column.ints[at]);
  switch (fault) {
    case NumberFault::not_a_number:
      return fail(text, &column,
                  quoted(token) + (column.is_float ? " is not a number" : " is not a whole number"));
    case NumberFault::out_of_range:
      return fail(text, &column,
                  quoted(token) + (column.is_float ? " is too large for float32" : " does not fit 64 bits"));
    case NumberFault::none:
      break;
  }
  return text + token.size();
}

std::string_view MultiSlotParser::token_at(const char* text) const noexcept {
  const char* end = text;
  while (!ends_token(*end)) ++end;
  return {text, static_cast<std::size_t>(end - text)};
}

const char* MultiSlotParser::fail(const char* at, const Column* column, std::string what) {
  fault_ = {.line = line_,
            .column = static_cast<std::size_t>(at - line_start_) + 1,
            .slot = column ? column->name : "",
            .what = std::move(what)};
  return nullptr;
}

const char* MultiSlotParser::fail_length() {
  return fail(line_start_ + options_.max_line_bytes, nullptr,
              "the line is longer than " + std::to_string(options_.max_line_bytes) + " bytes");
}

/// A fault of an input that begins as packed files do is that.
void MultiSlotParser::judge_first_line() {
  if (line_ != 1) return;
  const std::string_view line(line_start_, end_ - begin_);
  std::string_view packer;
  if (line.starts_with("\x1F\x8B")) packer = "gzip";
  if (line.starts_with("\x28\xB5\x2F\xFD")) packer = "zstd";
  if (line.starts_with("BZh")) packer = "bzip2";
  if (line.starts_with("\xFD\x37zXZ")) packer = "xz";
  if (packer.empty()) return;
  fault_ = {.what = std::string(packer) + " bytes where text should be", .packed = true};
}

std::string_view MultiSlotParser::bad_line() const noexcept {
  const std::string_view rest(line_start_, end_ - begin_);
  return rest.substr(0, rest.find('\n'));
}

std::optional<LineFault> parse_multi_slot(std::span<const Slot> slots, std::string_view text, Batch& batch,
                                          LinePrefixes prefixes) {
  MultiSlotParser parser(slots, {.prefixes = prefixes});
  parser.begin_batch(batch, static_cast<std::size_t>(-1) / 2);
  auto outcome = MultiSlotParser::Outcome::more;
  while (outcome == MultiSlotParser::Outcome::more && !text.empty()) {
    const std::span<char> room = parser.room();
    const std::size_t bytes = std::min(room.size(), text.size());
    std::memcpy(room.data(), text.data(), bytes);
    parser.commit(bytes);
    text.remove_prefix(bytes);
    outcome = parser.parse();
  }
  if (outcome == MultiSlotParser::Outcome::more) {
    parser.end_input();
    outcome = parser.parse();
  }
  parser.end_batch();
  if (outcome == MultiSlotParser::Outcome::bad) return parser.fault();
  return std::nullopt;
}

}  // namespace fleetrun::dataset
