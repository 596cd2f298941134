#include "dataset/tools/read_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "dataset/pipes/byte_source.h"
#include "dataset/schema/schema.h"
#include "dataset/schema/schema_printer.h"
#include "dataset/tools/commands.h"
#include "dataset/tools/refusal.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr int kClosedPipeStatus = 141;

struct ReadRequest {
  std::string schema;
  std::vector<std::string> files;
};

ReadRequest parse_read(const std::vector<std::string>& arguments) {
  ReadRequest request;
  ArgumentReader words(arguments, kHelpHint);
  while (words.next()) {
    if (!words.is_flag())
      request.files.push_back(words.word());
    else if (words.word() == "--schema")
      request.schema = words.value();
    else
      refuse_arguments("read has no flag " + printable(words.word()));
  }
  if (request.schema.empty()) refuse_arguments("read needs --schema=FILE");
  return request;
}

class StandardInput : public ByteSource {
 public:
  std::size_t read(std::span<char> room) override {
    for (;;) {
      const ssize_t count = ::read(STDIN_FILENO, room.data(), room.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR)
        throw Error(ErrorKind::data, std::string("standard input cannot be read: ") + std::strerror(errno));
    }
  }
};

/// False when nobody reads it any more.
bool print_all(SchemaPrinter& printer, ByteSource& source, const std::string& name) {
  printer.begin_input();
  for (bool ended = false; !ended;) {
    const std::size_t bytes = source.read(printer.room());
    printer.commit(bytes);
    ended = bytes == 0;
    if (ended) printer.end_input();
    const bool good = printer.print();
    if (!print_text(printer.text())) return false;
    if (!good) throw Error(ErrorKind::data, name + ":" + to_string(printer.fault()));
  }
  return true;
}

}  // namespace

std::string read_help() {
  return R"(usage: fleetrun data read --schema=FILE [FILE]…

Prints delimited text (tabs, commas) as MultiSlot text: standard input, or the files one after the other. The
schema, a file of JSON, says what becomes of each column: hashes, buckets, logarithms, ranges;
fleetrun-schema(5) has the words.

  --schema FILE          the schema

example: fleetrun data read --schema=criteo.json < day_0.tsv
as a pipe command: dataset.set_pipe_command("fleetrun data read --schema=criteo.json")
)";
}

int run_read(const std::vector<std::string>& arguments) {
  const ReadRequest request = parse_read(arguments);
  SchemaPrinter printer(read_schema(request.schema));
  if (request.files.empty()) {
    const auto input = without_mark(std::make_unique<StandardInput>());
    return print_all(printer, *input, "standard input") ? 0 : kClosedPipeStatus;
  }
  check_files(request.files);
  for (const std::string& file : request.files) {
    const auto source = open_byte_source({.file = file});
    if (!print_all(printer, *source, file)) return kClosedPipeStatus;
  }
  return 0;
}

}  // namespace fleetrun::dataset
