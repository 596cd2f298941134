#include "dataset/tools/convert_command.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "dataset/tools/check_text.h"
#include "dataset/tools/commands.h"
#include "dataset/tools/convert_pass.h"
#include "dataset/tools/parquet.h"
#include "dataset/tools/refusal.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr std::int64_t kMaxBlockRows = std::int64_t{1} << 24;

struct ConvertRequest {
  ToolInput input;
  BadLineRule bad_lines;
  std::string out;
  ConvertOptions options;
};

ConvertRequest parse_convert(const std::vector<std::string>& arguments) {
  ConvertRequest request;
  request.options.threads = std::max(1U, std::thread::hardware_concurrency());
  ArgumentReader words(arguments, kHelpHint);
  while (words.next()) {
    if (request.input.take(words) || request.bad_lines.take(words)) continue;
    if (words.word() == "--out") {
      request.out = words.value();
    } else if (words.word() == "--threads") {
      request.options.threads = static_cast<std::size_t>(words.number(1));
    } else if (words.word() == "--block_rows") {
      const std::int64_t rows = words.number(1);
      if (rows > kMaxBlockRows)
        refuse_arguments("--block_rows=" + std::to_string(rows) + " is more than " +
                         std::to_string(kMaxBlockRows));
      request.options.block_rows = static_cast<std::uint32_t>(rows);
    } else {
      refuse_arguments("convert has no flag " + printable(words.word()));
    }
  }
  request.input.check();
  if (request.out.empty()) refuse_arguments("convert needs --out=DIR, --out=FILE.frc or --out=FILE.parquet");
  request.options.bad_lines_allowed = request.bad_lines.allowed;
  return request;
}

void make_directory(const std::string& out) {
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (!std::filesystem::is_directory(out))
    throw Error(ErrorKind::host,
                printable(out) + " is not a directory" + (error ? ": " + error.message() : ""),
                "--out is a directory, or a file whose name ends in .frc or .parquet");
}

void show_written(const Conversion& conversion, const ColumnarWritten& written) {
  char text[128];
  const int length =
      std::snprintf(text, sizeof text, ": %" PRIu64 " rows, %" PRIu64 " bytes", written.rows, written.bytes);
  if (is_columnar(conversion.to))
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ", digest %016" PRIx64,
                  written.digest);
  print_text(printable(conversion.to) + text + "\n");
}

}  // namespace

std::string convert_help() {
  return std::string(
             R"(usage: fleetrun data convert FILE… --slots LIST --out DIR|FILE.frc|FILE.parquet
                             [--pipe_command CMD] [--bad_line=fail|skip:N]

Writes what the files hold as columns, which are read again without parsing, with checksums. With a directory
as --out each file gets one of its own there, by its name with .frc behind it; else all rows go into one file,
in the order of the files: columns, or Parquet where Python has pyarrow. A file is there when it is complete,
under the name of one that was there before. The other commands read both. fleetrun-columns(5) describes
columns.
)") + kInputHelp +
         R"(  --out DIR|FILE.frc|FILE.parquet
                         where to write
  --bad_line=fail        end at the first bad line (default)
  --bad_line=skip:N      leave out up to N bad lines, and say which
  --block_rows N         rows of a block, the unit in which they are read (default 8192)
  --threads N            files that are converted at the same time (default: the processors)

example: fleetrun data convert data/part-* --slots=@slots.json --out=columns
)";
}

int run_convert(const std::vector<std::string>& arguments) {
  ConvertRequest request = parse_convert(arguments);
  if (!is_columnar(request.out) && !is_parquet(request.out)) make_directory(request.out);
  request.options.done = show_written;
  CheckResult left_out;
  left_out.first_bad =
      convert(request.input, plan_conversions(request.input.files, request.out), request.options);
  left_out.bad_lines = left_out.first_bad.size();
  if (left_out.bad_lines > 0) std::fputs(("left out:\n" + bad_lines_text(left_out)).c_str(), stderr);
  return 0;
}

}  // namespace fleetrun::dataset
