// What a coordinator has to know to go on where another one stopped: published where there is a Discovery,
// and gathered from the members where there is none. A value, and its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cluster/messages.h"

namespace fleetrun::launcher {

struct Journal {
  std::string job_id;
  std::string run;
  std::uint64_t generation = 0;         // the highest that was ever proposed, as far as known
  std::shared_ptr<const World> world;   // the newest; null: none was formed yet
  std::string coordinator;              // node of the one that formed it; empty: it is not a node
  std::vector<PastFailure> past;        // oldest first: what the restart policy has to be told again
  Configuration formed;                 // the newest world known, which may be newer than `world`
  std::vector<Configuration> promised;  // proposals after it that may have become worlds
};

/// Texts for launcher/model/discovery.h: bytes, not meant for people.
std::string encode(const Journal& journal);

/// Throws: Error(data) for bytes that are not a journal, or one of another version.
Journal decode_journal(std::string_view bytes);

}  // namespace fleetrun::launcher
