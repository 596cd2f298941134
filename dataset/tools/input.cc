#include "dataset/tools/input.h"

#include <algorithm>
#include <utility>

#include "dataset/columnar/block_rows.h"
#include "dataset/columnar/columnar_file.h"
#include "dataset/pipes/byte_source.h"
#include "dataset/tools/parquet.h"
#include "dataset/tools/refusal.h"
#include "dataset/tools/slot_list.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

PipeOptions pipe_of(const ToolInput& input, const std::string& file) {
  if (is_parquet(file) && input.pipe_command.empty()) return {.argv = parquet_text_command(input.slots)};
  return {.command = input.pipe_command};
}

class TextRows : public RowReader {
 public:
  TextRows(const ToolInput& input, const std::string& file)
      : file_(file),
        parser_(input.slots),
        source_(open_byte_source(
            {.file = file, .pipe = pipe_of(input, file), .environment = own_environment()})) {}

  Outcome next(Batch& batch, std::size_t wanted) override {
    parser_.begin_batch(batch, wanted);
    const Outcome outcome = fill();
    parser_.end_batch();
    return outcome;
  }
  const LineFault& fault() const noexcept override { return parser_.fault(); }

 private:
  Outcome fill() {
    for (;;) {
      switch (parser_.parse()) {
        case MultiSlotParser::Outcome::full:
          return Outcome::rows;
        case MultiSlotParser::Outcome::bad:
          if (fault().packed) refuse_packed();
          parser_.skip_bad_line();
          return Outcome::bad;
        case MultiSlotParser::Outcome::more:
          break;
      }
      if (ended_) return Outcome::end;
      const std::size_t bytes = source_->read(parser_.room());
      parser_.commit(bytes);
      ended_ = bytes == 0;
      if (ended_) parser_.end_input();
    }
  }

  [[noreturn]] void refuse_packed() const {
    throw Error(ErrorKind::data, file_ + ": " + fault().what,
                "let its name end in .gz, .zst, .bz2 or .xz, or unpack it by --pipe_command");
  }

  const std::string file_;
  MultiSlotParser parser_;
  std::unique_ptr<ByteSource> source_;
  bool ended_ = false;
};

class ColumnarRows : public RowReader {
 public:
  ColumnarRows(const ToolInput& input, const std::string& file)
      : file_(file), wanted_(input.slots), slots_(find_slots(file_, wanted_)) {}

  Outcome next(Batch& batch, std::size_t wanted) override {
    BlockRows::begin(batch, wanted_, wanted);
    while (batch.rows < wanted && (rows_.left() > 0 || block_ < file_.blocks())) {
      if (rows_.left() == 0) rows_.load(file_, block_++, slots_);
      rows_.append(batch, wanted - batch.rows);
    }
    BlockRows::end(batch, wanted_);
    return batch.rows == wanted ? Outcome::rows : Outcome::end;
  }
  const LineFault& fault() const noexcept override { return no_fault_; }

 private:
  ColumnarFile file_;
  std::vector<Slot> wanted_;
  std::vector<std::size_t> slots_;
  BlockRows rows_{true};
  std::uint64_t block_ = 0;
  LineFault no_fault_;
};

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  const Environ own = Environ::of_process();
  for (const auto& [name, value] : own.values()) all.push_back(name + "=" + value);
  return all;
}

const char* const kInputHelp = R"(
The files are MultiSlot text, as QueueDataset reads it: packed ones by their names; or columnar files (.frc)
or Parquet (.parquet, where Python has pyarrow), which say themselves what slots they have.

  --slots LIST           the slots of a line, in order, with commas between: NAME:TYPE where a line may have
                         any number of values above 0, NAME:TYPE[N] where it has N. TYPE is int64 or float32.
                         May be there several times: --slots=label:int64[1] --slots=C{1..26}:int64
  --slots @FILE          the same from FILE: a JSON list of {"name": "price", "type": "float32", "width": 13};
                         a slot without a width may have any number of values
  --pipe_command CMD     what makes MultiSlot text of a file; bash runs it with the file as standard input
)";

bool ToolInput::take(ArgumentReader& words) {
  if (!words.is_flag()) {
    files.push_back(words.word());
  } else if (words.word() == "--slots") {
    for (Slot& slot : parse_slots(words.value())) slots.push_back(std::move(slot));
  } else if (words.word() == "--pipe_command") {
    pipe_command = words.value();
  } else {
    return false;
  }
  return true;
}

void ToolInput::check() {
  if (files.empty()) refuse_arguments("there is no FILE to read");
  check_files(files);
  if (slots.empty() && std::all_of(files.begin(), files.end(), is_columnar))
    slots = ColumnarFile(files[0]).slots();
  if (slots.empty() && pipe_command.empty() && std::all_of(files.begin(), files.end(), is_parquet))
    slots = parquet_slots(files[0]);
  check_slots(slots);
}

std::unique_ptr<RowReader> open_rows(const ToolInput& input, const std::string& file) {
  if (is_columnar(file)) return std::make_unique<ColumnarRows>(input, file);
  return std::make_unique<TextRows>(input, file);
}

}  // namespace fleetrun::dataset
