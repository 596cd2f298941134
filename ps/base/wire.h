// What travels between a client and a server. Little-endian, arrays contiguous, nothing aligned by the
// reader's luck: headers are multiples of 8 bytes, 64-bit arrays come before 32-bit ones.
//
//   request    magic u32 "FLPS" | version u16 | method u16 | trainer u32 | thread u32
//              | incarnation u64 | generation u64 | sequence u64 | body
//
//   pull       sparse u32, dense u32 | sparse x {table u32, width u32, keys u64, flags u32, slot u32}
//              | dense x {table u32, encoding u32, floats u64} | keys u64[] of every sparse section
//     reply    rows f32[keys, width] of every sparse section | values f32[] of every dense section
//   push       as pull, and at the end as dense sections of tables fffffffd, fffffffe and ffffffff the
//              threads whose steps a merged push has, the squares that measure gave, of all servers, and the
//              rate of scheduled rules
//              | gradients f32[keys, width] of every sparse section | shows f32[keys], clicks
//              f32[keys] of every sparse section that has them | f32[] of every dense section
//   assign     as push, rows for gradients
//   measure    the push that will follow; answered when each participant of the step has come with either
//     reply    f32[tables that are clipped to a norm, by id]: the squares of the step's mean on this server
//   set_dense  table u32, 0 u32, floats u64 | values f32[]
//   hello      mode u32, trainers u32, servers u32, rank u32, arrival u32 (kBeginsAnew, kCountsEpochs)
//              | tables u32 | text x tables | launcher text
//     reply    late u32: 1 for a trainer that comes while others train (trainer_registry), 0 u32 | server u64
//              | next change u64 | barriers, all_reduces, epochs so far u64 x 3 | digest of its save u64
//              | threads u64 | steps u64 of each thread of the trainer in that epoch
//              | {data, barriers, all_reduces u64} of each epoch, where they are counted (counted_epochs.h)
//   begin_epoch threads u32, 0 u32, data u64, barriers u64, all_reduces u64
//   leave_epoch, barrier, attend, goodbye, load_commit, load_abort   no body
//   all_reduce count u64 | f64[]   reply f64[]
//   save_begin directory text      reply a save number that is free there u64
//   save_freeze    reply clients u32 | clients x {trainer u32, 0 u32, incarnation u64, number u64}
//   save_settle clients u32 | clients x as above: the highest of all servers
//   save_part  directory text, save u64, mode u32, 0 u32, since u64, number u64 (both 0 unless an export)
//     reply pieces u32 | pieces x {bytes u64, digest u64}
//   save_text  directory text, mode u32                 save_end   committed u32: 1 when all servers have
//   save_commit parts u32 | parts x {pieces u32 | pieces x {bytes u64, digest u64}}
//   load_prepare directory text, save u64 or 0 for the newest that is whole
//     reply    save u64, digest of its manifest u64, what was wrong with a newer one text
//   rows       table u32           reply u64            text       length u32 | bytes
//   stat                           reply tables u32 | tables x {id u32, kind u32, width u64, text name}
//                                  | text of JSON (ps/server/stat_json.h)
//   pull_touched number u64, most u64   reply generation u64, more u32, tables u32
//              | tables x {table u32, width u32, keys u64} | keys u64[] of every table
//              | rows f32[keys, width] of every table (ps/server/touched_keys.h)
//   get        table u32, 0 u32, keys u64 | keys u64[]   of a dense table no keys
//     reply    width u32, statistics u32 (1: they are there) | found u32[keys]
//              | {slot u32, unseen u32, delta f32, show f32, click f32}[keys] | values f32[keys, width]
//   shrink     table u32           reply erased u64, or nothing: it was done before
//   take_staleness                 reply pushes u64, total u64, highest u64 (ps/sync/staleness.h)
//   who_waits  milliseconds u64    reply text: who waits for whom, where nobody has gone on for so long
//   follow, hand_back   between a server and its standby: ps/base/standby.h
//   keep_pace  step u64, bound u64: answered when the thread may begin the step (staleness_bound.h)
//
// Rows and gradients of a section whose flags (sparse) or encoding (dense) say so are shorter than f32
// (ps/base/encoding.h). The width of a sparse section is that of what travels: gradients have the table's,
// rows pulled from a ctr table two more. The keys of one section of a push are distinct. A client's
// incarnation is a random number: it tells a trainer that came back from the one before it. A hello and the
// attend after it have a random sequence, which tells one connection of an incarnation from the next. The
// generation is that of the world the trainer knows, 0 without one; an older one is refused.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ps/base/encoding.h"
#include "ps/base/message.h"
#include "ps/base/method.h"

namespace fleetrun::ps::wire {

static_assert(std::endian::native == std::endian::little, "messages are written as they lie in memory");

inline constexpr std::uint32_t kMagic = 0x53504c46;  // "FLPS"
inline constexpr std::uint16_t kVersion = 6;
/// The thread of a push that is part of no step: an empty one, where a server has had the step from the
/// process before (ps/base/fast_forward.h), so that the client's numbers have no gaps.
inline constexpr std::uint32_t kNoStep = 0xffffffff;
/// The threads of a trainer, at most: fewer than the calls that a connection carries at once
/// (ps/rpc/rpc_settings.h), each of which may wait in a push.
inline constexpr std::uint32_t kMaxThreads = 960;
/// The rank of who looks on and is not a trainer (fleetrun ps, ps/client/observer.h).
inline constexpr std::uint32_t kObserver = 0xffffffff;
/// Longest message either side takes: 1 GiB. A batch of a million keys of width 64 is a quarter of it.
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 30;

struct Header {
  Method method = Method::hello;
  std::uint32_t trainer = 0;
  std::uint32_t thread = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  /// Numbers the changes of an incarnation (push, assign, set_dense, shrink) from 1, the same on all servers,
  /// and apart from that its barriers, its sums and its epochs; 0 for what need not be told apart.
  std::uint64_t sequence = 0;

  bool operator==(const Header&) const = default;
};

/// Flags of a sparse section. Of a pull: unknown keys get no rows. Of a push: shows and clicks come with it.
/// Of a pull whose rows travel shorter: their first two values are show and click, which travel as they are.
inline constexpr std::uint32_t kNoNewRows = 1;
inline constexpr std::uint32_t kStatistics = 2;
inline constexpr std::uint32_t kCountsFirst = 4;
/// Above it: the encoding.
inline constexpr std::uint32_t kEncodingShift = 8;

/// One sparse section: `keys` rows of `width` floats.
struct Rows {
  std::uint32_t table = 0;
  std::uint32_t width = 0;
  std::uint64_t keys = 0;
  std::uint32_t flags = 0;
  /// With kStatistics: what the keys' rows note as their slot.
  std::uint32_t slot = 0;

  bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  /// How its rows or gradients travel.
  Encoding encoding() const noexcept { return static_cast<Encoding>(flags >> kEncodingShift & 0xff); }
  void set_encoding(Encoding encoding) noexcept {
    flags = (flags & ((1u << kEncodingShift) - 1)) | static_cast<std::uint32_t>(encoding) << kEncodingShift;
  }
  /// Of a row's values, those that travel as they are.
  std::size_t counts() const noexcept { return has(kCountsFirst) ? std::min(width, 2u) : 0; }
  /// Bytes of its rows or gradients.
  std::size_t bytes() const noexcept {
    const std::size_t shorter = width - counts();
    return keys * counts() * sizeof(float) + encoded_bytes(encoding(), keys * shorter, shorter);
  }
  bool operator==(const Rows&) const = default;
};
/// One dense section: the floats of one server's block.
struct Floats {
  std::uint32_t table = 0;
  std::uint32_t encoded = 0;
  std::uint64_t floats = 0;

  Encoding encoding() const noexcept { return static_cast<Encoding>(encoded); }
  std::size_t bytes() const noexcept { return encoded_bytes(encoding(), floats, kDenseRow); }
  bool operator==(const Floats&) const = default;
};
/// How far the changes of one client have come.
struct Progress {
  std::uint32_t trainer = 0;
  std::uint32_t unused = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;
};
struct Sections {
  std::vector<Rows> sparse;
  std::vector<Floats> dense;

  bool empty() const noexcept { return sparse.empty() && dense.empty(); }
};

/// A request being made, header and sections written; the caller fills what is left.
struct PullDraft {
  Message message;
  std::vector<std::span<std::uint64_t>> keys;
};
struct PushDraft {
  Message message;
  std::vector<std::span<std::uint64_t>> keys;
  std::vector<std::span<float>> gradients;
  /// By sparse section; empty where there are none.
  std::vector<std::span<float>> shows = {};
  std::vector<std::span<float>> clicks = {};
  std::vector<std::span<float>> dense = {};
  std::span<float> squares = {};
  /// Gradients that travel encoded are filled in `plain`, where `gradients` and `dense` show it, and encoded
  /// to `encoded` then: by sparse section, then by dense section; nullptr for sections of floats.
  std::vector<std::byte*> encoded = {};
  std::vector<std::vector<float>> plain = {};
};
/// Throw: Error(data) when the message would be longer than kLongestMessage.
PullDraft draft_pull(const Header& header, const Sections& sections, const MessageSource& source = {});
/// What a push has beside its gradients.
struct PushExtras {
  float rate = 1.0f;  // of scheduled rules
  /// How many squares its draft has room for.
  std::size_t squares = 0;
  /// Of a merged push the threads whose steps it has, one entry a step; empty: the header's thread.
  std::span<const std::uint32_t> threads = {};
};
PushDraft draft_push(const Header& header, Sections, const PushExtras& extras = {},
                     const MessageSource& source = {});
Message copy_as(Method method, const Message& request);
/// A request with room for a body of `body` bytes, and the writer that stands at its start.
struct Draft {
  Message message;
  Writer writer;
};
Draft draft(const Header& header, std::size_t body, const MessageSource& source = {});

/// Gives a request that was drafted its number.
void set_sequence(Message& request, std::uint64_t sequence);

void write_text(Writer& writer, std::string_view text);
inline std::size_t text_size(std::string_view text) noexcept {
  return sizeof(std::uint32_t) + text.size();
}

/// Reads the header. Throws: Error(data) for anything that is not a request of this version.
Header read_header(Reader& reader);

struct PullRequest {
  Sections sections;
  std::vector<std::span<const std::uint64_t>> keys;
  std::vector<Message> copies;
};
struct PushRequest {
  Sections sections;
  std::vector<std::span<const std::uint64_t>> keys;
  std::vector<std::span<const float>> gradients;
  std::vector<std::span<const float>> shows = {};  // by sparse section, as in PushDraft
  std::vector<std::span<const float>> clicks = {};
  std::vector<std::span<const float>> dense = {};
  std::span<const float> squares = {};  // empty where nobody measured
  float rate = 1.0f;
  std::vector<std::uint32_t> threads = {};  // as in draft_push()
  std::vector<Message> copies;
};
/// Views into the reader's pieces where they allow it. Throw: Error(data) when the sizes announced and the
/// bytes there disagree.
PullRequest read_pull(Reader& reader);
PushRequest read_push(Reader& reader);
Floats read_floats(Reader& reader);
std::string read_text(Reader& reader);
/// The rows of a pull, as they travel: bytes() of the section. `values` has its keys * width.
void encode_rows(const Rows& section, std::span<const float> values, std::byte* out);
void decode_rows(const Rows& section, const std::byte* in, std::span<float> values);
/// Throws: Error(data) when bytes are left over.
void expect_end(const Reader& reader);

}  // namespace fleetrun::ps::wire
