// Any bytes, as what ranks say to the job's store, one message after the other: no crash, nothing but an
// Error(data), and a message is written as it is read.
//
//   input   {client u8, size u8, message}…

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collective/store/store_state.h"

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

constexpr int kRanks = 3;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "store_message_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  StoreState store(kRanks, "1");
  while (size >= 2) {
    const StoreState::Client client = data[0] % (kRanks + 1);
    const std::size_t length = std::min<std::size_t>(data[1], size - 2);
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, length);
    data += 2 + length;
    size -= 2 + length;
    try {
      const StoreMessage message = decode_store_message(bytes);
      if (encode(message) != bytes) broken("a message is not written as it is read");
      for (const StoreState::Output& output : store.receive(client, message))
        if (encode(output.message).size() > kMaxStoreBytes + 64)
          broken("an answer is longer than any may be");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) broken("a message is refused as something else");
      store.end(client, "it is gone");
    }
    try {
      decode_gathered(bytes);
    } catch (const Error&) {
    }
  }
  return 0;
}
