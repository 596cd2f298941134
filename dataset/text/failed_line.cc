#include "dataset/text/failed_line.h"

#include <cstdint>
#include <exception>

#include "runtime/base/codec.h"
#include "runtime/base/error.h"
#include "runtime/base/failed_batch.h"

namespace fleetrun::dataset {

/// The bytes may be a stranger's, and slots that are wide take memory. More numbers than these do not fit
/// into what is kept of a line.
constexpr std::int64_t kMaxWidth = kMaxFailedBatch / 2;

template <class Archive, class Value>
void fields(Archive& archive, Value& slot, const Slot*) {
  archive(slot.name);
  codec::choice(archive, slot.type, 1);
  archive(slot.dense, slot.width, slot.used);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& fault, const LineFault*) {
  std::uint64_t column = fault.column;
  archive(fault.line, column, fault.slot, fault.what, fault.packed);
  if constexpr (Archive::reads) fault.column = column;
}

template <class Archive, class Value>
void fields(Archive& archive, Value& line, const FailedLine*) {
  archive(line.slots, line.prefixes.id, line.prefixes.content, line.prefixes.log_key, line.fault, line.text);
}

void keep_failed_line(const FailedLine& line, const std::string& error) noexcept {
  if (failed_batch_file().empty()) return;
  try {
    codec::Writer writer;
    writer(line);
    keep_failed_batch({FailedBatch::Kind::line, error, writer.take()});
  } catch (const std::exception&) {
    // The error that is on its way says more.
  }
}

FailedLine parse_failed_line(std::string_view bytes) {
  codec::Reader reader(bytes);
  FailedLine line;
  reader(line);
  reader.end();
  std::int64_t left = kMaxWidth;
  for (const Slot& slot : line.slots) {
    if (slot.width <= 0 || slot.width > left)
      throw Error(ErrorKind::data, "the slots of this batch are wider than " + std::to_string(kMaxWidth));
    left -= slot.width;
  }
  if (line.slots.empty() || line.text.find('\n') != std::string::npos)
    throw Error(ErrorKind::data, "this batch has no slots, or not one line");
  return line;
}

std::string read_again(const FailedLine& line) {
  Batch batch;
  auto fault = parse_multi_slot(line.slots, line.text + "\n", batch, line.prefixes);
  if (!fault) return {};
  if (!fault->packed) fault->line = line.fault.line;
  return to_string(*fault);
}

}  // namespace fleetrun::dataset
