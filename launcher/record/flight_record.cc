#include "launcher/record/flight_record.h"

#include <algorithm>

#include "launcher/record/fields.h"
#include "runtime/base/codec.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

/// Variables that fleetrun itself sets, or that say how a framework computes.
constexpr std::string_view kShown[] = {"CPU_NUM",       "CUDA_VISIBLE_DEVICES",
                                       "FLAGS_",        "FLEETRUN_",
                                       "GLOO_",         "GROUP_",
                                       "LOCAL_",        "MASTER_",
                                       "MKL_",          "NCCL_",
                                       "OMP_",          "PADDLE_",
                                       "POD_",          "PYTHON",
                                       "RANK",          "ROLE_",
                                       "TORCH",         "TRAINER",
                                       "TRAINING_ROLE", "WORLD_SIZE"};

bool is_shown(const std::string& name) {
  return name.find("_ENDPOINTS") == std::string::npos && !names_a_secret(name) &&
         std::ranges::any_of(kShown, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// A Writer whose texts are cleaned.
class CleanWriter : public codec::Writer {
 public:
  explicit CleanWriter(const Redactor& redactor) : redactor_(redactor) {}

  template <class... Values>
  void operator()(const Values&... values) {
    (codec::field(*this, values), ...);
  }
  void text(std::string_view value) { codec::Writer::text(redactor_.clean(value)); }

 private:
  const Redactor& redactor_;
};

}  // namespace

void refuse_format(const std::string& version) {
  throw Error(ErrorKind::data,
              "this record was written by fleetrun " + version + ", in another format than this one reads",
              "replay it with that version");
}

std::vector<std::string> words_of(const std::vector<Action>& actions) {
  std::vector<std::string> words;
  for (const Action& action : actions) words.push_back(to_string(action));
  return words;
}

Plan recorded_plan(const Plan& plan) {
  Plan recorded = plan;
  recorded.backup.reset();
  for (ProcessSpec& process : recorded.processes) {
    const Environ all = std::exchange(process.environment, {});
    for (const auto& [name, value] : all.values()) {
      if (is_shown(name)) process.environment.set(name, value);
    }
  }
  return recorded;
}

std::string to_frame(const RecordEntry& entry, const Redactor& redactor) {
  CleanWriter writer(redactor);
  writer(entry);
  return codec::framed(writer.take());
}

FlightRecord parse_record(std::string_view bytes) {
  FlightRecord record;
  bool is_open = false;
  while (const auto frame = codec::first_frame(bytes, 1, codec::kNoLimit)) {
    RecordEntry entry;
    codec::Reader reader(*frame);
    reader(entry);
    reader.end();
    bytes.remove_prefix(4 + frame->size());
    if (auto* opening = std::get_if<RecordOpening>(&entry)) {
      record.opening = std::move(*opening);
      is_open = true;
    } else if (auto* end = std::get_if<RecordEnd>(&entry)) {
      record.end = std::move(*end);
    } else {
      record.entries.push_back(std::move(entry));
    }
  }
  if (!is_open) throw Error(ErrorKind::data, "this is no record of a job: it has no beginning");
  return record;
}

}  // namespace fleetrun::launcher
