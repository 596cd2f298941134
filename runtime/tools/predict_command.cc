#include "runtime/tools/predict_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "dataset/columnar/columnar_file.h"
#include "dataset/tools/commands.h"
#include "dataset/tools/input.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/inference/inference_model.h"
#include "runtime/tools/prediction_text.h"
#include "runtime/trainer/batch_feed.h"

namespace fleetrun::inference {
namespace {

using dataset::RowReader;
using dataset::Slot;

constexpr const char* kHint = "fleetrun predict --help shows the flags";
constexpr std::int64_t kMaxRowsAtOnce = 1 << 20;

struct PredictRequest {
  std::string model;
  dataset::ToolInput input;
  std::vector<std::string> fetches;
  std::size_t batch = 1000;
  bool json = false;
};

PredictRequest parse_predict(const std::vector<std::string>& arguments) {
  PredictRequest request;
  ArgumentReader words(arguments, kHint);
  while (words.next()) {
    if (!words.is_flag() && request.model.empty()) {
      request.model = words.word();
    } else if (request.input.take(words)) {
      continue;
    } else if (words.is_switch("--json")) {
      request.json = true;
    } else if (words.word() == "--fetch") {
      for (std::string& name : split(words.value(), ',')) request.fetches.push_back(std::move(name));
    } else if (words.word() == "--batch") {
      request.batch = static_cast<std::size_t>(std::min(words.number(1), kMaxRowsAtOnce));
    } else {
      words.refuse("predict has no flag " + printable(words.word()));
    }
  }
  if (request.model.empty()) words.refuse("there is no MODEL to predict with");
  if (request.input.files.empty()) words.refuse("there is no FILE to predict on");
  return request;
}

/// The model's inputs as slots of a text, in the order in which it was saved with them.
std::vector<Slot> slots_of(const InferenceModel& model) {
  std::vector<Slot> slots;
  for (const std::string& name : model.feeds()) {
    const engine::Variable& variable = model.program().variable(name);
    Slot slot{.name = name};
    slot.type =
        variable.type == engine::DataType::int64 ? dataset::SlotType::int64 : dataset::SlotType::float32;
    slot.dense = variable.lod_level == 0;
    for (std::size_t d = 1; slot.dense && d < variable.shape.size(); ++d) {
      if (variable.shape[d] < 0)
        throw Error(ErrorKind::usage, "how many values '" + name + "' has in a row is not in the model",
                    "give --slots");
      slot.width *= variable.shape[d];
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// Slots that the model does not read are passed over.
void keep_fed(std::vector<Slot>& slots, const InferenceModel& model, bool is_columnar) {
  const auto is_fed = [&](const Slot& slot) {
    return std::find(model.feeds().begin(), model.feeds().end(), slot.name) != model.feeds().end();
  };
  if (is_columnar) {
    std::erase_if(slots, [&](const Slot& slot) { return !is_fed(slot); });
    return;
  }
  for (Slot& slot : slots) slot.used = is_fed(slot);
}

class Prediction {
 public:
  Prediction(const InferenceModel& model, const PredictRequest& request)
      : request_(request),
        inputs_(runtime::inputs_of(model.program(), used(request.input.slots))),
        feed_(inputs_),
        predictor_(model) {
    const auto& names = request.fetches.empty() ? model.fetches() : request.fetches;
    for (const std::string& name : names) model.program().variable(name);
    names_ = names;
  }

  std::uint64_t rows() const noexcept { return rows_; }

  /// False when nobody reads the results any more.
  bool over(const std::string& file) {
    const auto reader = dataset::open_rows(request_.input, file);
    for (;;) {
      const auto outcome = reader->next(feed_.batch(), request_.batch);
      if (feed_.rows() > 0 && !step()) return false;
      if (outcome == RowReader::Outcome::bad)
        throw Error(ErrorKind::data, file + ":" + to_string(reader->fault()),
                    "fleetrun data check lists all bad lines");
      if (outcome == RowReader::Outcome::end) return true;
    }
  }

 private:
  static std::vector<Slot> used(std::vector<Slot> slots) {
    std::erase_if(slots, [](const Slot& slot) { return !slot.used; });
    return slots;
  }

  bool step() {
    feed_.fill();
    predictor_.run(feed_.feed());
    std::vector<Fetched> fetched;
    for (const std::string& name : names_) fetched.push_back({name, &predictor_.tensor(name)});
    rows_ += feed_.rows();
    return dataset::print_text(request_.json ? prediction_json(fetched, feed_.rows())
                                             : prediction_text(fetched, feed_.rows()));
  }

  const PredictRequest& request_;
  std::vector<runtime::BatchInput> inputs_;
  runtime::BatchFeed feed_;
  Predictor predictor_;
  std::vector<std::string> names_;
  std::uint64_t rows_ = 0;
};

}  // namespace

std::string predict_help() {
  return std::string(R"(usage: fleetrun predict MODEL FILE… [--slots LIST] [--fetch NAME,…] [--json]

Computes a saved model for each row of the files and prints a line for each: its fetched values, with spaces
between the values of one and tabs between two. MODEL is the PREFIX of save_inference_model, or the folder of
fleet.save_inference_model.
)") + dataset::kInputHelp +
         R"(  without --slots        a line of text has the model's inputs, in the order in which it was saved
                         with them; with it,
                         slots that the model does not read are passed over (the label of training files)
  --fetch NAME,…         these variables instead of the ones that the model was saved with
  --batch N              rows that are computed together (default 1000)
  --json                 one line of JSON for each row: {"NAME": value or [value, …], …}

example: fleetrun predict out/model day_1.txt --slots=ids:int64,price:float32[2],label:int64[1]
)";
}

int run_predict(const std::vector<std::string>& arguments) {
  PredictRequest request = parse_predict(arguments);
  const InferenceModel model = InferenceModel::load(request.model);
  const bool columnar = std::all_of(request.input.files.begin(), request.input.files.end(),
                                    [](const std::string& file) { return dataset::is_columnar(file); });
  if (request.input.slots.empty() && !columnar) request.input.slots = slots_of(model);
  request.input.check();
  keep_fed(request.input.slots, model, columnar);
  const auto begin = std::chrono::steady_clock::now();
  Prediction prediction(model, request);
  for (const std::string& file : request.input.files)
    if (!prediction.over(file)) return 0;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (::isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "%llu rows in %.2f s\n", static_cast<unsigned long long>(prediction.rows()),
                 took.count());
  return 0;
}

}  // namespace fleetrun::inference
