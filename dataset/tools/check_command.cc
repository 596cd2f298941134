#include "dataset/tools/check_command.h"

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "dataset/tools/bad_line_rule.h"
#include "dataset/tools/check_pass.h"
#include "dataset/tools/check_text.h"
#include "dataset/tools/commands.h"
#include "dataset/tools/input.h"
#include "dataset/tools/refusal.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

struct CheckRequest {
  ToolInput input;
  BadLineRule bad_lines;
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  bool json = false;
};

CheckRequest parse_check(const std::vector<std::string>& arguments) {
  CheckRequest request;
  ArgumentReader words(arguments, kHelpHint);
  while (words.next()) {
    if (request.input.take(words) || request.bad_lines.take(words)) continue;
    if (words.is_switch("--json"))
      request.json = true;
    else if (words.word() == "--threads")
      request.threads = static_cast<std::size_t>(words.number(1));
    else
      refuse_arguments("check has no flag " + printable(words.word()));
  }
  request.input.check();
  return request;
}

/// Shows how far it is in one line of a terminal, which is empty in the end.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  void show(std::size_t file, std::size_t files, std::uint64_t rows) {
    is_shown_ = true;
    std::fprintf(stderr, "\r\x1b[Kfile %zu of %zu, %.1f million rows", file, files,
                 static_cast<double>(rows) / 1e6);
    std::fflush(stderr);
  }

 private:
  bool is_shown_ = false;
};

CheckResult check_shown(const ToolInput& input, CheckOptions options) {
  ProgressLine progress;
  if (::isatty(STDERR_FILENO) != 0)
    options.progress = [&](std::size_t file, std::uint64_t rows) {
      progress.show(file, input.files.size(), rows);
    };
  return check_files_of(input, options);
}

}  // namespace

std::string check_help() {
  return std::string(
             R"(usage: fleetrun data check FILE… --slots LIST [--pipe_command CMD] [--bad_line=fail|skip:N]
                            [--json]

Reads files to their ends. Says which lines are not examples, as FILE:LINE:COLUMN with the slot and what is
wrong, and for each slot how many values there are, how many a row has, how many are missing (int64: a row
whose only value is 0; float32: nan), the least, the greatest, the mean of floats, and how many different ones
there are: counted up to 4,096, estimated above (~). Its exit status is 1 where there is a bad line.
)") + kInputHelp +
         R"(  --bad_line=fail        stop at the first bad line
  --bad_line=skip:N      up to N bad lines are fine: the exit status is 0 then
  --threads N            files that are read at the same time (default: the processors)
  --json                 one line of JSON instead

example: fleetrun data check data/part-* --slots=ids:int64,price:float32[2],label:int64[1]
)";
}

int run_check(const std::vector<std::string>& arguments) {
  const CheckRequest request = parse_check(arguments);
  CheckOptions options{.threads = request.threads};
  if (request.bad_lines.is_first_fatal) options.max_bad = 1;
  const CheckResult result = check_shown(request.input, options);
  if (request.json)
    print_text(check_json(request.input.slots, result, request.input.files.size()));
  else
    print_text(bad_lines_text(result) + check_text(request.input.slots, result, request.input.files.size()));
  return result.bad_lines > request.bad_lines.allowed ? 1 : 0;
}

}  // namespace fleetrun::dataset
