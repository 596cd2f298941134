// Any bytes, as the record of a job: read and gone through again, or refused, without a crash.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; flight_record_replay runs it over the corpus
// in every build.

#include <cstdint>
#include <string_view>

#include "launcher/record/replay.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const FlightRecord record = parse_record({reinterpret_cast<const char*>(data), size});
    const auto screen = [](const Report& report, const Plan&, const JobHistory&, std::string_view) {
      return report.cause;
    };
    replay(record, screen, [](const Told&, const Plan&) {});
  } catch (const Error&) {
  }
  return 0;
}
