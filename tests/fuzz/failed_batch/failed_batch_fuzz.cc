// Any bytes, as the batch of a report that is run again: no crash, nothing but an Error for what is damaged.
// What is taken is written as the same bytes; a program is run when all that it declares is small.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; failed_batch_replay runs it over the corpus
// in every build.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "dataset/text/failed_line.h"
#include "runtime/base/error.h"
#include "runtime/base/failed_batch.h"
#include "runtime/engine/failed_step.h"
#include "runtime/engine/operators/all_operators.h"
#include "tests/fuzz/small_program.h"

using namespace fleetrun;

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "failed_batch_fuzz: %s\n", what);
  std::abort();
}

void again(const FailedBatch& batch) {
  if (batch.kind == FailedBatch::Kind::line) {
    dataset::read_again(dataset::parse_failed_line(batch.content));
    return;
  }
  const engine::FailedStep step = engine::parse_failed_step(batch.content);
  check(to_bytes(engine::parse_failed_step(to_bytes(step))) == to_bytes(step), "another step when written");
  if (fuzz::is_small(step.program)) engine::run_again(step);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const FailedBatch batch = parse_failed_batch({reinterpret_cast<const char*>(data), size});
    check(parse_failed_batch(to_bytes(batch)) == batch, "another batch when written");
    again(batch);
  } catch (const Error&) {
  }
  return 0;
}
