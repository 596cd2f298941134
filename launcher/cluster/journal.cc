#include "launcher/cluster/journal.h"

#include "launcher/cluster/fields.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint32_t kJournalVersion = 1;

template <class Archive, class Value>
void fields(Archive& archive, Value& journal) {
  std::uint32_t version = kJournalVersion;
  archive.number(version);
  if (version != kJournalVersion) codec::refuse("a journal of another version of fleetrun");
  archive.text(journal.job_id);
  archive.id(journal.run);
  archive.number(journal.generation);
  bool formed = journal.world != nullptr;
  archive.flag(formed);
  if constexpr (Archive::reads) {
    if (formed) {
      auto world = std::make_shared<World>();
      codec::world(archive, *world);
      journal.world = std::move(world);
    }
  } else if (formed) {
    codec::world(archive, *journal.world);
  }
  archive.id(journal.coordinator);
  archive.list(journal.past, kMaxMembers, codec::kMinPast,
               [&archive](auto& each) { codec::past(archive, each); });
  codec::configuration(archive, journal.formed);
  archive.list(journal.promised, kMaxMembers, codec::kMinConfiguration,
               [&archive](auto& each) { codec::configuration(archive, each); });
}

}  // namespace

std::string encode(const Journal& journal) {
  codec::Writer writer;
  fields(writer, journal);
  return writer.take();
}

Journal decode_journal(std::string_view bytes) {
  codec::Reader reader(bytes);
  Journal journal;
  fields(reader, journal);
  reader.end();
  return journal;
}

}  // namespace fleetrun::launcher
