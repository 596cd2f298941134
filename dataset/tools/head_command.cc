#include "dataset/tools/head_command.h"

#include <algorithm>

#include "dataset/tools/commands.h"
#include "dataset/tools/input.h"
#include "dataset/tools/refusal.h"
#include "dataset/tools/rows_text.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr std::uint64_t kRowsShownAtOnce = 64;

struct HeadRequest {
  ToolInput input;
  std::uint64_t rows = 10;
  bool json = false;
};

HeadRequest parse_head(const std::vector<std::string>& arguments) {
  HeadRequest request;
  ArgumentReader words(arguments, kHelpHint);
  while (words.next()) {
    if (request.input.take(words)) continue;
    if (words.is_switch("--json"))
      request.json = true;
    else if (words.word() == "-n" || words.word() == "--rows")
      request.rows = static_cast<std::uint64_t>(words.number(1));
    else
      refuse_arguments("head has no flag " + printable(words.word()));
  }
  request.input.check();
  return request;
}

/// False when nobody reads it any more.
bool show(const HeadRequest& request, const std::string& file) {
  const auto reader = open_rows(request.input, file);
  Batch batch;
  for (std::uint64_t shown = 0; shown < request.rows;) {
    const auto outcome = reader->next(batch, std::min(request.rows - shown, kRowsShownAtOnce));
    if (!print_text(request.json ? rows_json(request.input.slots, batch)
                                 : rows_text(request.input.slots, batch, shown + 1)))
      return false;
    shown += batch.rows;
    if (outcome == RowReader::Outcome::bad)
      throw Error(ErrorKind::data, file + ":" + to_string(reader->fault()));
    if (outcome == RowReader::Outcome::end) break;
  }
  return true;
}

}  // namespace

std::string head_help() {
  return std::string(R"(usage: fleetrun data head [-n N] FILE… --slots LIST [--pipe_command CMD] [--json]

Shows the first rows of each file: the number of the row, then its slots by name with their values.
)") + kInputHelp +
         R"(  -n, --rows N           how many rows of each file (default 10)
  --json                 one line of JSON for each row, with all its values

example: fleetrun data head -n 2 part-00000.txt --slots=ids:int64,price:float32[2],label:int64[1]
)";
}

int run_head(const std::vector<std::string>& arguments) {
  const HeadRequest request = parse_head(arguments);
  for (const std::string& file : request.input.files) {
    if (request.input.files.size() > 1 && !request.json && !print_text("==> " + printable(file) + " <==\n"))
      break;
    if (!show(request, file)) break;
  }
  return 0;
}

}  // namespace fleetrun::dataset
