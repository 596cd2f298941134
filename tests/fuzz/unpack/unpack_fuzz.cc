// Any bytes, as a file that gzip or zstd packed: no crash, the same bytes or a fault, however they are cut.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; unpack_replay runs it over the corpus in
// every build. The first byte chooses the packing and the cut.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/pipes/byte_source.h"
#include "dataset/pipes/unpack.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

constexpr std::size_t kMaxBytes = std::size_t{1}
                                  << 20;  // of the unpacked: a few bytes may unpack to any number

class Pieces : public ByteSource {
 public:
  Pieces(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}
  std::size_t read(std::span<char> room) override {
    const std::size_t count = std::min({bytes_.size(), piece_, room.size()});
    if (count > 0) std::memcpy(room.data(), bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
  const std::size_t piece_;
};

struct Unpacked {
  std::string text;
  bool is_fault = false;  // before which more or fewer bytes are handed out
};

Unpacked unpack(std::string_view packed, Packing packing, std::size_t piece, std::size_t room) {
  const auto source = unpacked(std::make_unique<Pieces>(packed, piece), packing, "file");
  Unpacked found;
  std::vector<char> bytes(room);
  try {
    while (found.text.size() < kMaxBytes) {
      const std::size_t count = source->read(bytes);
      if (count == 0) break;
      found.text.append(bytes.data(), count);
    }
  } catch (const Error&) {
    found.is_fault = true;
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Packing packing = (data[0] & 1) != 0 ? Packing::zstd : Packing::gzip;
  const std::string_view packed(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Unpacked whole = unpack(packed, packing, packed.size() + 1, 1 << 16);
  const Unpacked pieces = unpack(packed, packing, 1 + data[0] / 8, 1 + data[0] / 2);
  const std::size_t both = std::min(whole.text.size(), pieces.text.size());
  const bool is_cut = std::max(whole.text.size(), pieces.text.size()) >= kMaxBytes;
  if (whole.text.compare(0, both, pieces.text, 0, both) != 0 ||
      (!is_cut && (whole.is_fault != pieces.is_fault || (!whole.is_fault && whole.text != pieces.text)))) {
    std::fprintf(stderr, "unpack_fuzz: the bytes depend on the cut\n");
    std::abort();
  }
  return 0;
}
