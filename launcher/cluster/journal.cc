#include "launcher/cluster/journal.h"

#include "launcher/cluster/fields.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint32_t kJournalVersion = 2;

}  // namespace

template <class Archive, class Value>
void fields(Archive& archive, Value& journal, const Journal*) {
  std::uint32_t version = kJournalVersion;
  archive.number(version);
  if (version != kJournalVersion) codec::refuse("a journal of another version of fleetrun");
  archive(journal.job_id);
  archive.id(journal.run);
  archive(journal.generation);
  bool formed = journal.world != nullptr;
  archive.flag(formed);
  if (formed) archive(journal.world);
  archive.id(journal.coordinator);
  list(archive, journal.past, kMinPast);
  archive(journal.formed);
  list(archive, journal.promised, kMinConfiguration);
}

std::string encode(const Journal& journal) {
  codec::Writer writer(kMaxText);
  writer(journal);
  return writer.take();
}

Journal decode_journal(std::string_view bytes) {
  codec::Reader reader(bytes, kMaxText);
  Journal journal;
  reader(journal);
  reader.end();
  return journal;
}

}  // namespace fleetrun::launcher
