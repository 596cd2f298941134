// Any bytes, as the output of a process: the lines that are found and what is shown of them do not depend on
// how the bytes are cut, and nothing that acts on a terminal but colours is left in them.
//
// The first byte chooses the cut.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/logs/line_formatter.h"
#include "launcher/logs/line_splitter.h"

using namespace fleetrun::launcher;

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "log_lines_fuzz: %s\n", what);
  std::abort();
}

std::vector<LineSpan> spans_of(std::string_view text, std::size_t piece) {
  LineSplitter splitter;
  std::vector<LineSpan> spans;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    std::string_view part = text.substr(at, piece);
    while (!part.empty()) {
      if (const auto line = splitter.next(part)) spans.push_back(*line);
    }
  }
  if (const auto rest = splitter.unfinished()) spans.push_back(*rest);
  return spans;
}

std::string shown(std::string_view line, std::size_t piece) {
  LineFormatter formatter(true);
  std::string out;
  for (std::size_t at = 0; at < line.size(); at += piece) formatter.add(line.substr(at, piece), out);
  formatter.end(out, "");
  return out;
}

void check_safe(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == 0x1b) {
      const std::size_t end = text.find_first_not_of("0123456789;:[", at + 1);
      if (end == std::string_view::npos || text[end] != 'm') broken("an escape that is not a colour is left");
    } else if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      broken("a control character is left");
    }
    if (byte == 0xc2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0)
      broken("a C1 control character is left");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1 + data[0] % 32;
  const std::vector<LineSpan> spans = spans_of(text, text.size() + 1);
  if (spans_of(text, piece) != spans) broken("the lines depend on the cut");
  off_t last = 0;
  for (const LineSpan& span : spans) {
    if (span.begin < last || span.end < span.begin || static_cast<std::size_t>(span.end) > text.size())
      broken("a line lies elsewhere");
    last = span.end;
    const std::string_view line =
        text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin));
    const std::string whole = shown(line, line.size() + 1);
    if (shown(line, piece) != whole) broken("what is shown depends on the cut");
    check_safe(whole);
    check_safe(cut_to_columns(whole, piece));
  }
  return 0;
}
