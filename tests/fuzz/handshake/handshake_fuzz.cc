// Any bytes, as what comes from the other end of a connection: no crash, nothing believed without the secret,
// the same end however the bytes are cut, and messages arrive unchanged or not at all.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; handshake_replay runs it over the corpus in
// every build. The first byte chooses what is tried, the second the cut,
// the next two where a byte is changed.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/secure/handshake.h"
#include "runtime/secure/sealed_frames.h"

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

std::vector<std::string> open(std::string_view bytes, const Digest& key, std::size_t piece, bool& refused) {
  FrameOpener opener(key, kMax);
  std::vector<std::string> bodies;
  try {
    while (!bytes.empty()) {
      opener.receive(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (const auto body = opener.next()) bodies.emplace_back(*body);
    }
  } catch (const Error&) {
    refused = true;
  }
  return bodies;
}

/// A good connection over which `text` goes, with one byte of either the handshake or the frames changed.
void conversation(std::string_view text, std::size_t piece, std::size_t place, unsigned char change) {
  Handshake client = end_of(Side::client, true), server = end_of(Side::server, true);
  std::string opening = client.output();
  const bool changed_opening = change != 0 && place < opening.size();
  if (changed_opening) opening[place] = static_cast<char>(opening[place] ^ change);
  bool good = take(server, opening, piece);
  good = take(client, server.output(), piece) && good;
  good = take(server, client.output(), piece) && good;
  if (good && server.finished() && changed_opening) broken("a changed opening was believed");
  if (!changed_opening && !(client.finished() && server.finished())) broken("a good handshake failed");
  if (changed_opening) return;

  FrameSealer sealer(client.keys().to_peer);
  std::string frames;
  const std::string_view first = text.substr(0, text.size() / 2), second = text.substr(text.size() / 2);
  sealer.seal(first, frames);
  sealer.seal(second, frames);
  const bool changed = change != 0 && place - opening.size() < frames.size();
  if (changed) frames[place - opening.size()] = static_cast<char>(frames[place - opening.size()] ^ change);
  bool refused = false;
  const auto bodies = open(frames, server.keys().from_peer, piece, refused);
  if (!changed && (refused || bodies != std::vector<std::string>{std::string(first), std::string(second)}))
    broken("a message did not arrive");
  if (changed && bodies.size() == 2) broken("a changed message arrived");
  if (!bodies.empty() && bodies[0] != first) broken("a message arrived as another");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4 || size > kMax) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const std::size_t piece = 1 + data[1] % 64;
  if (data[0] % 3 == 0) noise(text, piece);
  if (data[0] % 3 == 1) conversation(text, piece, data[2], data[3]);
  if (data[0] % 3 == 2) {
    bool whole = false, cut = false;
    if (open(text, {}, text.size() + 1, whole) != open(text, {}, piece, cut) || whole != cut)
      broken("what is opened depends on the cut");
  }
  return 0;
}
