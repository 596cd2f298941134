#include "dataset/tools/check_pass.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace fleetrun::dataset {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{200};

class CheckPass {
 public:
  CheckPass(const ToolInput& input, const CheckOptions& options) : input_(input), options_(options) {
    result_.slots.resize(input.slots.size());
  }

  CheckResult run() {
    std::vector<std::thread> threads;
    const std::size_t count = std::max<std::size_t>(1, std::min(options_.threads, input_.files.size()));
    working_ = count;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    wait();
    for (std::thread& thread : threads) thread.join();
    if (first_error_) std::rethrow_exception(first_error_);
    for (auto& [file, lines] : bad_)
      for (LineFault& fault : lines)
        if (result_.first_bad.size() < options_.listed)
          result_.first_bad.push_back({input_.files[file], std::move(fault)});
    result_.rows = rows_;
    result_.bad_lines = bad_lines_;
    return std::move(result_);
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kProgressEvery, [this] { return working_ == 0; }))
      if (options_.progress) options_.progress(std::min<std::size_t>(next_file_, input_.files.size()), rows_);
  }

  void work() noexcept {
    std::vector<SlotSummary> summaries(input_.slots.size());
    try {
      for (std::size_t file = next_file_++; file < input_.files.size() && !is_over_; file = next_file_++)
        read(file, summaries);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_error_) first_error_ = std::current_exception();
      is_over_ = true;
    }
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < summaries.size(); ++i) result_.slots[i].add(summaries[i]);
    if (--working_ == 0) ended_.notify_all();
  }

  void read(std::size_t file, std::vector<SlotSummary>& summaries) {
    const auto reader = open_rows(input_, input_.files[file]);
    Batch batch;
    for (auto outcome = RowReader::Outcome::rows; outcome != RowReader::Outcome::end && !is_over_;) {
      outcome = reader->next(batch, kRowsAtOnce);
      for (std::size_t i = 0; i < summaries.size(); ++i)
        summaries[i].add(input_.slots[i], batch.slots[i], batch.rows);
      rows_ += batch.rows;
      if (outcome == RowReader::Outcome::bad) take_bad(file, reader->fault());
    }
  }

  void take_bad(std::size_t file, const LineFault& fault) {
    if (++bad_lines_ >= options_.max_bad) is_over_ = true;
    const std::lock_guard lock(mutex_);
    std::vector<LineFault>& lines = bad_[file];
    if (lines.size() < options_.listed) lines.push_back(fault);
  }

  const ToolInput& input_;
  const CheckOptions& options_;
  std::atomic<std::size_t> next_file_ = 0;
  std::atomic<std::uint64_t> rows_ = 0;
  std::atomic<std::uint64_t> bad_lines_ = 0;
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t working_ = 0;
  std::exception_ptr first_error_;
  std::map<std::size_t, std::vector<LineFault>> bad_;
  CheckResult result_;
};

}  // namespace

CheckResult check_files_of(const ToolInput& input, const CheckOptions& options) {
  return CheckPass(input, options).run();
}

}  // namespace fleetrun::dataset
