#include "runtime/tools/failed_batches.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "dataset/text/failed_line.h"
#include "dataset/tools/commands.h"
#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/failed_batch.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"
#include "runtime/engine/failed_step.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"

namespace fleetrun::inference {
namespace {

using nlohmann::json;

constexpr std::size_t kShownBytes = 500;

/// What the batch is, for people, and what is said of it now.
struct Again {
  std::string batch, error;
};

Again again(const dataset::FailedLine& line) {
  const std::string shown = printable(json_text(json(line.text.substr(0, kShownBytes))));
  return {"  line: " + shown + (line.text.size() > kShownBytes ? "…" : "") + "\n", read_again(line)};
}

Again again(const engine::FailedStep& step) {
  std::string text;
  for (const auto& [name, value] : step.fed)
    text += "  fed " + printable(name) + ": " + std::string(to_string(value.type())) + " " +
            engine::to_string(value.shape()) + "\n";
  return {text, run_again(step)};
}

/// The error of a line begins with the name of its file, from which nothing is read again.
bool is_same(const FailedBatch& batch, const std::string& now) {
  if (batch.kind == FailedBatch::Kind::step) return batch.error == now;
  return !now.empty() && batch.error.ends_with(":" + now);
}

bool run(const std::string& process, const std::string& bytes) {
  const FailedBatch batch = parse_failed_batch(bytes);
  const Again now = batch.kind == FailedBatch::Kind::line ? again(dataset::parse_failed_line(batch.content))
                                                          : again(engine::parse_failed_step(batch.content));
  std::string text = "the batch that " + printable(process) + " could not train on\n" + now.batch +
                     "  then: " + printable(batch.error) + "\n";
  const bool same = is_same(batch, now.error);
  if (same)
    text += "  now: the same\n";
  else
    text += "  differs: now " + (now.error.empty() ? "nothing fails" : printable(now.error)) + "\n";
  dataset::print_text(text);
  return same;
}

}  // namespace

int run_failed_batches(const std::string& path) {
  return while_doing("running the batches of " + printable(path) + " again", [&] {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const json report = read_json<json>(text);
    if (!report.is_object() || !report.value("batches", json()).is_object())
      throw Error(ErrorKind::data, "it is no report with batches", "fleetrun report makes one");
    bool all_same = true;
    for (const auto& [process, content] : report["batches"].items()) {
      const auto bytes = content.is_string() ? from_base64(content.get<std::string>()) : std::nullopt;
      if (!bytes) throw Error(ErrorKind::data, "the batch of " + printable(process) + " is not base64");
      all_same = run(process, *bytes) && all_same;
    }
    return all_same ? 0 : 1;
  });
}

}  // namespace fleetrun::inference
