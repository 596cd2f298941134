#include "ps/base/wire.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "runtime/base/error.h"

namespace fleetrun::ps::wire {
namespace {

struct RawHeader {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t method = 0;
  std::uint32_t trainer = 0;
  std::uint32_t thread = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;
};
static_assert(sizeof(RawHeader) == 40 && sizeof(Rows) == 24 && sizeof(Floats) == 16);

// As errors, stat and metrics spell them; an epoch was called a pass once.
constexpr std::array<std::string_view, kMethodCount> kMethods = {
    "hello",          "attend",       "goodbye",   "pull",         "push",        "set_dense",
    "begin_pass",     "leave_pass",   "barrier",   "all_reduce",   "rows",        "save_begin",
    "save_part",      "save_commit",  "save_end",  "load_prepare", "load_commit", "load_abort",
    "stat",           "pull_touched", "get",       "shrink",       "save_freeze", "save_settle",
    "take_staleness", "keep_pace",    "save_text", "assign",       "measure",     "who_waits",
    "follow",         "hand_back"};

constexpr std::size_t kSequenceAt = offsetof(RawHeader, sequence);
constexpr std::size_t kMethodAt = offsetof(RawHeader, method);

Error malformed(const std::string& what) {
  return Error(ErrorKind::data, what);
}

std::size_t key_bytes(const Sections& sections) {
  std::size_t keys = 0;
  for (const Rows& rows : sections.sparse) keys += rows.keys;
  return keys * sizeof(std::uint64_t);
}

std::size_t section_bytes(const Sections& sections) {
  return 2 * sizeof(std::uint32_t) + sections.sparse.size() * sizeof(Rows) +
         sections.dense.size() * sizeof(Floats);
}

void write_sections(Writer& writer, const Sections& sections) {
  writer.value(static_cast<std::uint32_t>(sections.sparse.size()));
  writer.value(static_cast<std::uint32_t>(sections.dense.size()));
  writer.array(std::span<const Rows>(sections.sparse));
  writer.array(std::span<const Floats>(sections.dense));
}

void check_encoding(const auto& section) {
  if (static_cast<std::size_t>(section.encoding()) >= kEncodingCount)
    throw malformed("a section of an unknown encoding");
}

template <class T>
std::vector<T> read_list(Reader& reader, std::uint32_t count) {
  Message copy;
  const auto items = reader.array<T>(count, copy);
  return {items.begin(), items.end()};
}

Sections read_sections(Reader& reader) {
  const auto sparse = reader.value<std::uint32_t>();
  const auto dense = reader.value<std::uint32_t>();
  Sections out;
  out.sparse = read_list<Rows>(reader, sparse);
  out.dense = read_list<Floats>(reader, dense);
  for (const Rows& rows : out.sparse) check_encoding(rows);
  for (const Floats& block : out.dense) check_encoding(block);
  return out;
}

template <class T>
std::span<const T> read_array(Reader& reader, std::size_t count, std::vector<Message>& copies) {
  Message copy;
  const auto out = reader.array<T>(count, copy);
  if (copy.size() != 0) copies.push_back(std::move(copy));
  return out;
}

// The values of a section, decoded where they are shorter.
std::span<const float> read_values(Reader& reader, const auto& section, std::size_t count, std::size_t width,
                                   std::vector<Message>& copies) {
  if (section.encoding() == Encoding::float32) return read_array<float>(reader, count, copies);
  if (count > kLongestMessage) throw malformed("a section of more values than a message holds");
  Message copy;
  const auto words = reader.array<std::uint32_t>(section.bytes() / sizeof(std::uint32_t), copy);
  Message values(count * sizeof(float));
  const std::span<float> out(reinterpret_cast<float*>(values.data()), count);
  decode(section.encoding(), std::as_bytes(words).data(), width, out);
  copies.push_back(std::move(values));
  return out;
}

std::vector<std::span<const std::uint64_t>> read_keys(Reader& reader, const Sections& sections,
                                                      std::vector<Message>& copies) {
  std::vector<std::span<const std::uint64_t>> keys;
  keys.reserve(sections.sparse.size());
  for (const Rows& rows : sections.sparse) {
    keys.push_back(read_array<std::uint64_t>(reader, rows.keys, copies));
  }
  return keys;
}

}  // namespace

std::string_view to_string(Method method) noexcept {
  const auto index = static_cast<std::size_t>(method);
  return index < kMethods.size() ? kMethods[index] : "an unknown method";
}

void set_sequence(Message& request, std::uint64_t sequence) {
  std::memcpy(request.data() + kSequenceAt, &sequence, sizeof sequence);
}

Message copy_as(Method method, const Message& request) {
  Message copy(request.size());
  Writer(copy).array(request.bytes());
  const auto number = static_cast<std::uint16_t>(method);
  std::memcpy(copy.data() + kMethodAt, &number, sizeof number);
  return copy;
}

Draft draft(const Header& header, std::size_t body, const MessageSource& source) {
  const std::size_t size = sizeof(RawHeader) + body;
  if (size > kLongestMessage) {
    throw Error(ErrorKind::data,
                std::string(to_string(header.method)) + " needs a message of " + std::to_string(size) +
                    " bytes; the longest one is " + std::to_string(kLongestMessage),
                "use a smaller batch, or more servers");
  }
  Message message = source ? source(size) : Message(size);
  Writer writer(message);
  RawHeader raw;
  raw.method = static_cast<std::uint16_t>(header.method);
  raw.trainer = header.trainer;
  raw.thread = header.thread;
  raw.incarnation = header.incarnation;
  raw.generation = header.generation;
  raw.sequence = header.sequence;
  writer.value(raw);
  return {std::move(message), writer};
}

PullDraft draft_pull(const Header& header, const Sections& sections, const MessageSource& source) {
  Draft started = draft(header, section_bytes(sections) + key_bytes(sections), source);
  write_sections(started.writer, sections);
  PullDraft out{std::move(started.message), {}};
  for (const Rows& rows : sections.sparse) {
    out.keys.push_back(started.writer.room<std::uint64_t>(rows.keys));
  }
  return out;
}

// Where the gradients of a section are filled in.
static std::span<float> room_for(const auto& section, std::size_t count, Writer& writer, PushDraft& out) {
  const bool is_plain = section.encoding() == Encoding::float32;
  out.encoded.push_back(is_plain ? nullptr : writer.room<std::byte>(section.bytes()).data());
  return is_plain ? writer.room<float>(count) : std::span(out.plain.emplace_back(count));
}

// No tables' ids: the sections of the threads, of the squares and of the rate, in this order.
static constexpr std::uint32_t kThreadsTable = 0xfffffffd;
static constexpr std::uint32_t kSquaresTable = 0xfffffffe;
static constexpr std::uint32_t kRateTable = 0xffffffff;

// Takes the last section away from who fills the others.
static std::span<float> take_last(PushDraft& draft) {
  const std::span<float> out = draft.dense.back();
  draft.dense.pop_back();
  draft.encoded.pop_back();
  return out;
}

PushDraft draft_push(const Header& header, Sections sections, const PushExtras& extras,
                     const MessageSource& source) {
  if (!extras.threads.empty()) sections.dense.push_back({kThreadsTable, 0, extras.threads.size()});
  if (extras.squares != 0) sections.dense.push_back({kSquaresTable, 0, extras.squares});
  const float rate = extras.rate;
  if (rate != 1.0f) sections.dense.push_back({kRateTable, 0, 1});
  std::size_t bytes = section_bytes(sections) + key_bytes(sections);
  for (const Rows& rows : sections.sparse) {
    bytes += rows.bytes() + rows.keys * (rows.has(kStatistics) ? 2 * sizeof(float) : 0);
  }
  for (const Floats& block : sections.dense) bytes += block.bytes();
  Draft started = draft(header, bytes, source);
  write_sections(started.writer, sections);
  PushDraft out{std::move(started.message), {}, {}};
  for (const Rows& rows : sections.sparse) {
    out.keys.push_back(started.writer.room<std::uint64_t>(rows.keys));
  }
  for (const Rows& rows : sections.sparse) {
    out.gradients.push_back(room_for(rows, rows.keys * rows.width, started.writer, out));
  }
  for (const Rows& rows : sections.sparse) {
    const std::size_t counts = rows.has(kStatistics) ? rows.keys : 0;
    out.shows.push_back(started.writer.room<float>(counts));
    out.clicks.push_back(started.writer.room<float>(counts));
  }
  for (const Floats& block : sections.dense) {
    out.dense.push_back(room_for(block, block.floats, started.writer, out));
  }
  if (rate != 1.0f) take_last(out).front() = rate;
  if (extras.squares != 0) {
    out.squares = take_last(out);
    std::ranges::fill(out.squares, 0.0f);
  }
  if (!extras.threads.empty()) std::ranges::copy(extras.threads, take_last(out).begin());
  return out;
}

void write_text(Writer& writer, std::string_view text) {
  writer.value(static_cast<std::uint32_t>(text.size()));
  writer.array(std::span<const char>(text.data(), text.size()));
}

Header read_header(Reader& reader) {
  const auto raw = reader.value<RawHeader>();
  if (raw.magic != kMagic) throw malformed("not a request to a fleetrun parameter server");
  if (raw.version != kVersion) {
    throw Error(ErrorKind::config,
                "the request has protocol version " + std::to_string(raw.version) + ", this server speaks " +
                    std::to_string(kVersion),
                "run the same fleetrun on all hosts");
  }
  if (raw.method >= kMethods.size()) throw malformed("unknown method " + std::to_string(raw.method));
  return {static_cast<Method>(raw.method),
          raw.trainer,
          raw.thread,
          raw.incarnation,
          raw.generation,
          raw.sequence};
}

PullRequest read_pull(Reader& reader) {
  PullRequest out;
  out.sections = read_sections(reader);
  out.keys = read_keys(reader, out.sections, out.copies);
  expect_end(reader);
  return out;
}

// Makes the section of the rate the request's rate.
static void take_rate(PushRequest& request) {
  std::vector<Floats>& sections = request.sections.dense;
  if (sections.empty() || sections.back().table != kRateTable) return;
  if (request.dense.back().size() != 1 || !std::isfinite(request.dense.back().front()))
    throw malformed("the rate of a push is not one finite number");
  request.rate = request.dense.back().front();
  sections.pop_back();
  request.dense.pop_back();
}

static void take_squares(PushRequest& request) {
  std::vector<Floats>& sections = request.sections.dense;
  if (sections.empty() || sections.back().table != kSquaresTable) return;
  request.squares = request.dense.back();
  if (!std::ranges::all_of(request.squares,
                           [](float value) { return std::isfinite(value) && value >= 0.0f; }))
    throw malformed("the squares of a push are not finite numbers");
  sections.pop_back();
  request.dense.pop_back();
}

// Makes the section of the threads the request's threads.
static void take_threads(PushRequest& request) {
  std::vector<Floats>& sections = request.sections.dense;
  if (sections.empty() || sections.back().table != kThreadsTable) return;
  for (const float thread : request.dense.back()) {
    if (!(thread >= 0 && thread < kMaxThreads)) throw malformed("a step of a thread that is none");
    request.threads.push_back(static_cast<std::uint32_t>(thread));
  }
  sections.pop_back();
  request.dense.pop_back();
}

PushRequest read_push(Reader& reader) {
  PushRequest out;
  out.sections = read_sections(reader);
  out.keys = read_keys(reader, out.sections, out.copies);
  for (const Rows& rows : out.sections.sparse) {
    // keys was read, so it is small enough for the product not to wrap.
    out.gradients.push_back(read_values(reader, rows, rows.keys * rows.width, rows.width, out.copies));
  }
  for (const Rows& rows : out.sections.sparse) {
    const std::size_t counts = rows.has(kStatistics) ? rows.keys : 0;
    out.shows.push_back(read_array<float>(reader, counts, out.copies));
    out.clicks.push_back(read_array<float>(reader, counts, out.copies));
  }
  for (const Floats& block : out.sections.dense) {
    out.dense.push_back(read_values(reader, block, block.floats, kDenseRow, out.copies));
  }
  expect_end(reader);
  take_rate(out);
  take_squares(out);
  take_threads(out);
  return out;
}

Floats read_floats(Reader& reader) {
  return reader.value<Floats>();
}

std::string read_text(Reader& reader) {
  const auto length = reader.value<std::uint32_t>();
  Message copy;
  const auto bytes = reader.array<char>(length, copy);
  return {bytes.begin(), bytes.end()};
}

void expect_end(const Reader& reader) {
  if (reader.remaining() == 0) return;
  throw malformed("the message is " + std::to_string(reader.remaining()) + " bytes longer than it announces");
}

// Counts first, then the values: one scale for both would leave nothing of the values (int8), and halves end
// at 65504.
void encode_rows(const Rows& section, std::span<const float> values, std::byte* out) {
  const std::size_t counts = section.counts(), width = section.width - counts;
  if (counts == 0) return encode(section.encoding(), values, width, out);
  std::vector<float> shorter(section.keys * width);
  for (std::size_t row = 0; row < section.keys; ++row) {
    const auto from = values.subspan(row * section.width, section.width);
    std::memcpy(out + row * counts * sizeof(float), from.data(), counts * sizeof(float));
    std::ranges::copy(from.subspan(counts), shorter.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  encode(section.encoding(), shorter, width, out + section.keys * counts * sizeof(float));
}

void decode_rows(const Rows& section, const std::byte* in, std::span<float> values) {
  const std::size_t counts = section.counts(), width = section.width - counts;
  if (counts == 0) return decode(section.encoding(), in, width, values);
  std::vector<float> shorter(section.keys * width);
  decode(section.encoding(), in + section.keys * counts * sizeof(float), width, shorter);
  for (std::size_t row = 0; row < section.keys; ++row) {
    const auto to = values.subspan(row * section.width, section.width);
    std::memcpy(to.data(), in + row * counts * sizeof(float), counts * sizeof(float));
    std::copy_n(shorter.begin() + static_cast<std::ptrdiff_t>(row * width), width, to.begin() + counts);
  }
}

}  // namespace fleetrun::ps::wire
