// Any bytes, as a message or a journal of a job's hosts: no crash, no more memory than the bytes are worth,
// and what is read, written, reads the same.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; cluster_messages_replay runs it over the
// corpus in every build. The first byte chooses: a journal, or a message.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/cluster/journal.h"
#include "launcher/cluster/messages.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

/// What was read is written, and that is read and written again: both writings are the same.
template <class Read, class Value>
void check_round_trip(Read read, const Value& value) {
  const std::string once = encode(value);
  if (encode(read(once)) == once) return;
  std::fprintf(stderr, "cluster_messages_fuzz: what was written reads as something else\n");
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2)
      check_round_trip(decode_journal, decode_journal(bytes));
    else
      check_round_trip(decode, decode(bytes));
  } catch (const Error&) {
  }
  return 0;
}
