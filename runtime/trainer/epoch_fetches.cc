#include "runtime/trainer/epoch_fetches.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>

namespace fleetrun::runtime {

using engine::Tensor;

namespace {

double value_of(const Tensor& tensor, std::size_t i) {
  switch (tensor.type()) {
    case engine::DataType::float32:
      return static_cast<double>(tensor.values<float>()[i]);
    case engine::DataType::float64:
      return tensor.values<double>()[i];
    case engine::DataType::int32:
      return tensor.values<std::int32_t>()[i];
    case engine::DataType::int64:
      return static_cast<double>(tensor.values<std::int64_t>()[i]);
    case engine::DataType::boolean:
      return tensor.values<bool>()[i] ? 1.0 : 0.0;
  }
  return 0.0;
}

/// "loss[1]:[0.666739]": the number of values, then the values.
std::string text_of(const std::string& name, const Tensor& tensor) {
  std::string text = name + "[" + std::to_string(tensor.size()) + "]:[";
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    if (i > 0) text += ",";
    if (tensor.type() == engine::DataType::int64) {
      text += std::to_string(tensor.values<std::int64_t>()[i]);
      continue;
    }
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", value_of(tensor, i));
    text += number;
  }
  return text + "]";
}

std::string now() {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace

EpochFetches::EpochFetches(const EpochOptions& options, bool prints, std::uint64_t skipped)
    : options_(options), prints_(prints), skipped_(skipped), sums_(options.fetch.size(), 0.0) {
  period_.sums.resize(options.fetch.size());
  period_.has_one_value.resize(options.fetch.size());
}

void EpochFetches::account(std::size_t rows, const std::function<const Tensor&(const std::string&)>& tensor) {
  if (options_.on_batch) options_.on_batch(rows);
  examples_ += rows;
  ++batches_;
  const auto count = static_cast<std::int64_t>(skipped_ + batches_);
  const bool is_due = prints_ && options_.print_period > 0 && count % options_.print_period == 0;
  const bool prints = is_due && options_.print;
  std::string line;
  if (prints) line = "time: [" + now() + "], batch: [" + std::to_string(count) + "]";
  for (std::size_t i = 0; i < options_.fetch.size(); ++i) {
    const Tensor& value = tensor(options_.fetch[i]);
    if (prints_ && tells()) account_period(rows, i, value);
    sums_[i] += value.size() == 1 ? value_of(value, 0) * static_cast<double>(rows)
                                  : std::numeric_limits<double>::quiet_NaN();
    if (prints) {
      line +=
          ", " + text_of(i < options_.fetch_info.size() ? options_.fetch_info[i] : options_.fetch[i], value);
    }
  }
  if (prints) options_.print(line);
  period_.examples += rows;
  ++period_.batches;
  if (is_due) end();
}

void EpochFetches::account_period(std::size_t rows, std::size_t fetch, const Tensor& value) {
  period_.has_one_value[fetch] = value.size() == 1;
  if (value.size() == 1) period_.sums[fetch] += value_of(value, 0) * static_cast<double>(rows);
}

void EpochFetches::end() {
  if (!prints_ || !tells() || period_.batches == 0) return;
  TrainingEvent event{skipped_ + batches_, period_.batches, period_.examples, {}};
  for (std::size_t i = 0; i < options_.fetch.size(); ++i) {
    const std::string& name = i < options_.fetch_info.size() ? options_.fetch_info[i] : options_.fetch[i];
    if (period_.has_one_value[i])
      event.values.emplace_back(name, period_.sums[i] / static_cast<double>(period_.examples));
  }
  if (options_.events) options_.events->add(event);
  if (options_.on_event) options_.on_event(event);
  period_.batches = period_.examples = 0;
  std::ranges::fill(period_.sums, 0.0);
}

void add_to(EpochResult& result, const EpochFetches& fetches) {
  result.examples += fetches.examples();
  result.batches += fetches.batches();
  result.fetch_means.resize(fetches.sums().size(), 0.0);
  for (std::size_t i = 0; i < result.fetch_means.size(); ++i) result.fetch_means[i] += fetches.sums()[i];
}

void add_to(EpochResult& result, const EpochProfile& profile) {
  for (std::size_t i = 0; i < kStages; ++i) result.stages[i] += profile.stages()[i];
  for (const auto& [type, time] : profile.operators()) {
    result.operators[type].calls += time.calls;
    result.operators[type].seconds += time.seconds;
  }
}

void finish_means(EpochResult& result) {
  for (double& mean : result.fetch_means)
    mean /= static_cast<double>(std::max<std::uint64_t>(result.examples, 1));
}

}  // namespace fleetrun::runtime
