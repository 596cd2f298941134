#include "dataset/columnar/columnar_dataset.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "dataset/base/fingerprint.h"
#include "dataset/base/first_error.h"
#include "dataset/columnar/block_rows.h"
#include "dataset/columnar/columnar_file.h"
#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

void check_options(const ColumnarDatasetOptions& options) {
  if (options.files.empty())
    throw Error(ErrorKind::config, "a dataset without files", "call set_filelist() with the data files");
  if (options.batch_size < 1) throw Error(ErrorKind::config, "a batch size of 0, less than 1");
  if (options.threads < 1) throw Error(ErrorKind::config, "a thread count of 0, less than 1");
}

}  // namespace

/// A file of the epoch.
struct ColumnarDataset::Part {
  ColumnarFile file;
  std::vector<std::size_t> slots;
  std::uint64_t first_block;
};

struct ColumnarDataset::Reader {
  explicit Reader(bool verify) : rows(verify) {}
  BlockRows rows;
  std::uint64_t taken = 0;  // blocks
  bool is_over = false;
};

struct ColumnarDataset::State {
  explicit State(ColumnarDatasetOptions wanted) : options(std::move(wanted)) {}

  void open_files();
  bool load_next(std::size_t number);
  const Part& part_of(std::uint64_t block) const;
  void fail(std::exception_ptr cause) noexcept;

  ColumnarDatasetOptions options;
  std::vector<Part> parts;
  std::uint64_t blocks = 0;
  std::vector<std::unique_ptr<Reader>> readers;
  std::atomic<std::uint64_t> next_block = 0;
  bool in_turn = false;
  std::atomic<bool> is_stopped = false;
  FirstError first_error;
};

void ColumnarDataset::State::open_files() {
  for (const std::string& name : options.files) {
    ColumnarFile file(name);
    if (options.slots.empty()) options.slots = file.slots();
    std::vector<std::size_t> slots = find_slots(file, options.slots);
    const std::uint64_t first = blocks;
    blocks += file.blocks();
    parts.push_back({std::move(file), std::move(slots), first});
  }
}

const ColumnarDataset::Part& ColumnarDataset::State::part_of(std::uint64_t block) const {
  const auto after =
      std::upper_bound(parts.begin(), parts.end(), block,
                       [](std::uint64_t wanted, const Part& part) { return wanted < part.first_block; });
  return *std::prev(after);
}

/// False when there is no block left for the reader.
bool ColumnarDataset::State::load_next(std::size_t number) {
  Reader& reader = *readers[number];
  const std::uint64_t step = in_turn ? readers.size() : 1;
  const std::uint64_t block = in_turn ? number + reader.taken++ * step : next_block++;
  if (block >= blocks) return false;
  const Part& part = part_of(block);
  part.file.announce(block - part.first_block + step);
  reader.rows.load(part.file, block - part.first_block, part.slots);
  return true;
}

void ColumnarDataset::State::fail(std::exception_ptr cause) noexcept {
  first_error.put(std::move(cause));
  is_stopped = true;
}

ColumnarDataset::ColumnarDataset(ColumnarDatasetOptions options) {
  check_options(options);
  state_ = std::make_unique<State>(std::move(options));
  state_->open_files();
}

ColumnarDataset::~ColumnarDataset() = default;

const std::vector<Slot>& ColumnarDataset::slots() const noexcept {
  return state_->options.slots;
}

std::uint64_t ColumnarDataset::rows() const noexcept {
  std::uint64_t rows = 0;
  for (const Part& part : state_->parts) rows += part.file.rows();
  return rows;
}

void ColumnarDataset::start(bool in_turn) {
  State& state = *state_;
  state.in_turn = in_turn;
  state.next_block = 0;
  state.first_error.clear();
  state.is_stopped = false;
  state.readers.clear();
  const std::uint64_t readers =
      std::clamp<std::uint64_t>(state.options.threads, 1, std::max<std::uint64_t>(1, state.blocks));
  for (std::uint64_t i = 0; i < readers; ++i)
    state.readers.push_back(std::make_unique<Reader>(state.options.verify));
}

std::size_t ColumnarDataset::readers() const noexcept {
  return state_->readers.size();
}

std::uint64_t ColumnarDataset::fingerprint() const {
  const ColumnarDatasetOptions& options = state_->options;
  return Fingerprint()
      .add(options.files)
      .add(rows())
      .add_batches(options.batch_size, readers(), options.drop_last)
      .value();
}

bool ColumnarDataset::next(std::size_t number, Batch& batch) {
  State& state = *state_;
  Reader& reader = *state.readers.at(number);
  const std::size_t wanted = state.options.batch_size;
  BlockRows::begin(batch, state.options.slots, wanted);
  try {
    while (!reader.is_over && batch.rows < wanted && !state.is_stopped) {
      if (reader.rows.left() == 0 && !state.load_next(number)) reader.is_over = true;
      if (!reader.is_over) reader.rows.append(batch, wanted - batch.rows);
    }
  } catch (...) {
    state.fail(std::current_exception());
  }
  if (state.is_stopped) {
    batch.rows = 0;
    state.first_error.rethrow();
    return false;
  }
  BlockRows::end(batch, state.options.slots);
  return batch.rows == wanted || (batch.rows > 0 && !state.options.drop_last);
}

void ColumnarDataset::stop() noexcept {
  state_->is_stopped = true;
}

}  // namespace fleetrun::dataset
