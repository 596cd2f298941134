#include "dataset/tools/input.h"

#include <utility>

#include "dataset/byte_source.h"
#include "dataset/tools/slot_list.h"
#include "runtime/base/environ.h"

namespace fleetrun::dataset {
namespace {

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  const Environ own = Environ::of_process();
  for (const auto& [name, value] : own.values()) all.push_back(name + "=" + value);
  return all;
}

class TextRows : public RowReader {
 public:
  TextRows(const ToolInput& input, const std::string& file)
      : parser_(input.slots),
        source_(open_byte_source(
            {.file = file, .command = input.pipe_command, .environment = own_environment()})) {}

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

  MultiSlotParser parser_;
  std::unique_ptr<ByteSource> source_;
  bool ended_ = false;
};

}  // namespace

const char* const kInputHelp = R"(
The files are MultiSlot text, as QueueDataset reads it: packed ones by their names.

  --slots LIST           the slots of a line, in order, with commas between: NAME:TYPE where a line may have any number of
                         values above 0, NAME:TYPE[N] where it has N. TYPE is int64 or float32. May be there several times:
                         --slots=label:int64[1] --slots=C{1..26}:int64
  --slots @FILE          the same from FILE: a JSON list of {"name": "price", "type": "float32", "width": 13}; a slot
                         without a width may have any number of values
  --pipe_command CMD     what makes MultiSlot text of a file; bash runs it with the file as standard input
)";

bool ToolInput::take(Words& words) {
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

void ToolInput::check() const {
  if (files.empty()) refuse_words("there is no FILE to read");
  check_slots(slots);
  check_files(files);
}

std::unique_ptr<RowReader> open_rows(const ToolInput& input, const std::string& file) {
  return std::make_unique<TextRows>(input, file);
}

}  // namespace fleetrun::dataset
