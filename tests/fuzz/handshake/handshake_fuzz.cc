// Any bytes, as what comes from the other end of a connection: no crash, nothing believed without the secret,
// the same end however the bytes are cut, and messages arrive unchanged or not at all.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; handshake_replay runs it over the corpus in
// every build. The first byte chooses what is tried, the second the cut,
// the next two where a byte is changed.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/secure/handshake.h"

using namespace fleetrun;

namespace {

constexpr std::size_t kMax = 65'536;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "handshake_fuzz: %s\n", what);
  std::abort();
}

Handshake end_of(Side side, bool with_secret) {
  HandshakeSettings settings;
  settings.side = side;
  if (with_secret) settings.secret = Secret::from_bytes("0123456789abcdefghijklmnopqrstuv");
  settings.purpose = "cluster";
  settings.version = "1.2.3";
  settings.peer = "somebody";
  return Handshake(settings);
}

/// True when it took all of it without an error.
bool take(Handshake& end, std::string_view bytes, std::size_t piece) {
  try {
    while (!bytes.empty() && !end.finished()) {
      const std::size_t taken = end.receive(bytes.substr(0, piece));
      if (taken > bytes.size() || (taken == 0 && !end.finished()))
        broken("it took more than there was, or nothing");
      bytes.remove_prefix(taken);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

void noise(std::string_view bytes, std::size_t piece) {
  for (const Side side : {Side::client, Side::server}) {
    Handshake whole = end_of(side, true), cut = end_of(side, true);
    if (take(whole, bytes, bytes.size() + 1) != take(cut, bytes, piece)) broken("the end depends on the cut");
    if (whole.finished() || cut.finished()) broken("it believed somebody without the secret");
    if (whole.output().size() > 1024) broken("a stranger is answered at length");
  }
}

/// What `end` takes of the bytes.
std::string open(RecordLayer& end, std::string_view bytes, std::size_t piece, bool& refused) {
  std::string plain;
  std::array<std::byte, 1000> into;
  try {
    while (!bytes.empty()) {
      std::string_view part = bytes.substr(0, piece);
      bytes.remove_prefix(part.size());
      while (const std::size_t count = end.open(part, into))
        plain.append(reinterpret_cast<const char*>(into.data()), count);
      if (!part.empty()) broken("bytes were left over");
    }
  } catch (const Error&) {
    refused = true;
  }
  return plain;
}

/// A good connection over which `text` goes, with one byte changed: of the opening, or of what is sealed.
void conversation(std::string_view text, std::size_t piece, std::size_t place, unsigned char change) {
  Handshake client = end_of(Side::client, true), server = end_of(Side::server, true);
  std::string opening = client.output();
  const bool changed_opening = change != 0 && place < opening.size();
  if (changed_opening) opening[place] = static_cast<char>(opening[place] ^ change);
  bool good = take(server, opening, piece);
  for (int round = 0; round < 2; ++round) {
    good = take(client, server.output(), piece) && good;
    good = take(server, client.output(), piece) && good;
  }
  if (good && server.finished() && changed_opening) broken("a changed opening was believed");
  if (!changed_opening && !(client.finished() && server.finished())) broken("a good handshake failed");
  if (changed_opening) return;

  auto from = client.take_records(), to = server.take_records();
  std::string bytes;
  from->seal(std::as_bytes(std::span(text)), bytes);
  const bool changed = change != 0 && place - opening.size() < bytes.size();
  if (changed) bytes[place - opening.size()] = static_cast<char>(bytes[place - opening.size()] ^ change);
  bool refused = false;
  const std::string plain = open(*to, bytes, piece, refused);
  if (!text.starts_with(plain)) broken("something arrived that was not sent");
  if (!changed && (refused || plain != text)) broken("what was sent did not arrive");
  if (changed && plain == text) broken("a changed byte arrived");
}

/// Any bytes, as records of somebody who has proven nothing.
void records(std::string_view bytes, std::size_t piece) {
  for (const Side side : {Side::client, Side::server}) {
    RecordLayer end(side, "0123456789abcdefghijklmnopqrstuv");
    std::string answer;
    try {
      for (std::string_view rest = bytes; !rest.empty();) {
        std::string_view part = rest.substr(0, piece);
        rest.remove_prefix(part.size());
        end.establish(part, answer);
        if (end.established()) broken("it believed somebody without the key");
      }
    } catch (const Error&) {
      // It is not what an end says.
    }
  }
}

/// Any bytes, as messages.
void messages(std::string_view bytes, std::size_t piece) {
  const auto read = [&](std::size_t size, bool& refused) {
    FrameReader reader(kMax);
    std::vector<std::string> bodies;
    try {
      for (std::string_view rest = bytes; !rest.empty();) {
        reader.receive(rest.substr(0, size));
        rest.remove_prefix(std::min(size, rest.size()));
        while (const auto body = reader.next()) bodies.emplace_back(*body);
      }
    } catch (const Error&) {
      refused = true;
    }
    return bodies;
  };
  bool whole = false, cut = false;
  if (read(bytes.size() + 1, whole) != read(piece, cut) || whole != cut)
    broken("what is read depends on the cut");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4 || size > kMax) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const std::size_t piece = 1 + data[1] % 64;
  if (data[0] % 4 == 0) noise(text, piece);
  if (data[0] % 4 == 1) conversation(text, piece, data[2], data[3]);
  if (data[0] % 4 == 2) messages(text, piece);
  if (data[0] % 4 == 3) records(text, piece);
  return 0;
}
