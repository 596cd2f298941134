#include "runtime/base/failed_batch.h"

#include <fcntl.h>

#include <mutex>

#include "runtime/base/codec.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/write_all.h"

namespace fleetrun {
namespace {

constexpr std::string_view kBegin = "fleetrun batch 1\n";
constexpr int kMostKept = 8;  // a script that gets over its errors may make any number of them

template <class Archive, class Value>
void all_fields(Archive& archive, Value& value) {
  codec::choice(archive, value.kind, 1);
  archive(value.error, value.content);
}

}  // namespace

std::string failed_batch_file() {
  return Environ::of_process().value_or("FLEETRUN_FAILED_BATCH", "");
}

void keep_failed_batch(const FailedBatch& batch) noexcept {
  static std::mutex mutex;
  static int kept = 0;
  try {
    const std::string path = failed_batch_file(), bytes = to_bytes(batch);
    const std::lock_guard lock(mutex);
    if (path.empty() || bytes.size() > kMaxFailedBatch || kept == kMostKept) return;
    ++kept;
    const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
    if (file) static_cast<void>(write_all(file.value(), bytes));
  } catch (const std::exception&) {
    // The error that is on its way says more.
  }
}

std::string to_bytes(const FailedBatch& batch) {
  codec::Writer writer;
  all_fields(writer, batch);
  return std::string(kBegin) + writer.take();
}

FailedBatch parse_failed_batch(std::string_view bytes) {
  if (!bytes.starts_with(kBegin))
    throw Error(ErrorKind::data, "this is no failed batch of this version of fleetrun");
  codec::Reader reader(bytes.substr(kBegin.size()));
  FailedBatch batch;
  all_fields(reader, batch);
  reader.end();
  return batch;
}

}  // namespace fleetrun
