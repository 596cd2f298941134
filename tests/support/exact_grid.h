// All collective calls whose results are known exactly, by one rank: all kinds × operations × types × counts,
// in place and out. Of the kinds whose buffers grow with the ranks a count above 1000 is what there is in
// all.
#pragma once

#include <cstdio>
#include <vector>

#include "tests/support/exact_calls.h"

namespace fleetrun::tests {

inline bool grows_with_ranks(CallKind kind) {
  return kind == CallKind::all_gather || kind == CallKind::reduce_scatter || kind == CallKind::all_to_all;
}

struct Tally {
  std::size_t calls = 0, wrong = 0;
};

/// All ranks of the communicator do so at the same time. What is wrong is said on standard error.
inline Tally make_calls(Communicator& communicator, const std::vector<std::size_t>& counts) {
  const auto ranks = static_cast<std::size_t>(communicator.place().size);
  Tally tally;
  for (const DataType type : kTypes) {
    for (const std::size_t count : counts) {
      for (ExactCall call : exact_calls(type, count)) {
        if (grows_with_ranks(call.kind) && count > 1000) call.count = count / ranks;
        const std::size_t wrong = wrong_elements(communicator, call);
        if (wrong > 0)
          std::fprintf(stderr, "rank %d of %zu: %s: %zu wrong\n", communicator.place().rank, ranks,
                       to_string(call).c_str(), wrong);
        ++tally.calls;
        tally.wrong += wrong;
      }
    }
  }
  return tally;
}

}  // namespace fleetrun::tests
