#include "dataset/tools/convert_pass.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "dataset/tools/parquet.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

// What a Parquet file is made of: columns that are there only meanwhile.
std::string columns_beside(const std::string& parquet) {
  return parquet + ".columns" + std::string(kColumnarSuffix);
}

struct Removed {
  std::string file;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
};

class ConvertPass {
 public:
  ConvertPass(const ToolInput& input, const std::vector<Conversion>& conversions,
              const ConvertOptions& options)
      : input_(input), conversions_(conversions), options_(options) {}

  std::vector<BadLine> run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::clamp<std::size_t>(options_.threads, 1, conversions_.size()); ++i)
      threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    if (first_error_) std::rethrow_exception(first_error_);
    return std::move(bad_);
  }

 private:
  void work() noexcept {
    try {
      for (std::size_t i = next_++; i < conversions_.size() && !is_over_; i = next_++) write(conversions_[i]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_error_) first_error_ = std::current_exception();
      is_over_ = true;
    }
  }

  void write(const Conversion& conversion) {
    const bool to_parquet = is_parquet(conversion.to);
    const std::string columns = to_parquet ? columns_beside(conversion.to) : conversion.to;
    ColumnarWriter writer(columns, input_.slots, options_.block_rows);
    for (const std::string& file : conversion.from) add(writer, file);
    if (is_over_) return;
    ColumnarWritten written = writer.finish();
    if (to_parquet) {
      const Removed removed{columns};
      write_parquet(columns, conversion.to);
      written.bytes = std::filesystem::file_size(conversion.to);
    }
    const std::lock_guard lock(mutex_);
    if (options_.done) options_.done(conversion, written);
  }

  void add(ColumnarWriter& writer, const std::string& file) {
    const auto reader = open_rows(input_, file);
    Batch batch;
    for (auto outcome = RowReader::Outcome::rows; outcome != RowReader::Outcome::end && !is_over_;) {
      outcome = reader->next(batch, kRowsAtOnce);
      writer.add(batch);
      if (outcome == RowReader::Outcome::bad) take_bad(file, reader->fault());
    }
  }

  void take_bad(const std::string& file, const LineFault& fault) {
    const std::lock_guard lock(mutex_);
    bad_.push_back({file, fault});
    if (bad_.size() <= options_.bad_lines_allowed) return;
    const std::string where = printable(file) + ":" + to_string(fault);
    throw Error(ErrorKind::data, where,
                options_.bad_lines_allowed == 0
                    ? "--bad_line=skip:N leaves out up to N such lines; fleetrun data check lists them"
                    : "it is one more than --bad_line=skip:" + std::to_string(options_.bad_lines_allowed) +
                          " allows");
  }

  const ToolInput& input_;
  const std::vector<Conversion>& conversions_;
  const ConvertOptions& options_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::exception_ptr first_error_;
  std::vector<BadLine> bad_;
};

}  // namespace

std::vector<Conversion> plan_conversions(const std::vector<std::string>& files, const std::string& out) {
  std::vector<Conversion> all;
  if (is_columnar(out) || is_parquet(out)) {
    all.push_back({files, out});
  } else {
    std::map<std::string, std::string> named;
    for (const std::string& file : files) {
      const std::string name = std::filesystem::path(file).filename().string();
      const auto [before, is_new] = named.emplace(name, file);
      if (!is_new)
        throw Error(ErrorKind::usage,
                    printable(before->second) + " and " + printable(file) + " would both become " +
                        printable(name) + std::string(is_columnar(name) ? "" : kColumnarSuffix),
                    "convert them into two directories, or into one file: --out=NAME.frc");
      all.push_back({{file},
                     (std::filesystem::path(out) / name).string() +
                         std::string(is_columnar(name) ? "" : kColumnarSuffix)});
    }
  }
  for (const Conversion& conversion : all)
    for (const std::string& file : conversion.from)
      if (is_same_file(file, conversion.to) ||
          (is_parquet(conversion.to) && is_same_file(file, columns_beside(conversion.to))))
        throw Error(ErrorKind::usage, printable(file) + " would be written over itself",
                    "choose another --out");
  return all;
}

std::vector<BadLine> convert(const ToolInput& input, const std::vector<Conversion>& conversions,
                             const ConvertOptions& options) {
  return ConvertPass(input, conversions, options).run();
}

}  // namespace fleetrun::dataset
