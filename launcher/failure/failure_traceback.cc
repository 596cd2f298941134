// Tracebacks of Python:
//
//   Traceback (most recent call last):        a header; what stands before it on its line
//                                             (torch's "[rank5]: ") is
//     File "train.py", line 3, in step        taken off the lines below it too
//       loss = f(x)                           frames are indented
//   ValueError: bad x                         the exception, and below it the rest of its message
//
// Exceptions that follow from each other are one chain: what is shown is the last, what decides is the first.
#include <algorithm>
#include <optional>

#include "launcher/failure/failure_parts.h"

namespace fleetrun::launcher {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last)";
constexpr std::size_t kMaxMessageLines = 12;

struct Traceback {
  std::size_t first = 0, last = 0;
  std::string exception;  // its line; empty when the log ends before it
  std::string message;    // that line and those below it
  std::string place;      // "train.py:step", the innermost frame
  bool nested = false;    // quoted within the message of the one before
};

std::string_view without_prefix(std::string_view line, std::string_view prefix) {
  if (line.starts_with(prefix)) return line.substr(prefix.size());
  if (line == trimmed(prefix)) return {};
  return line;
}

bool is_chain_marker(std::string_view line) {
  return contains(line, "During handling of the above exception, another exception occurred") ||
         contains(line, "The above exception was the direct cause of the following exception");
}

/// Lines that cannot belong to an exception's message: a logger's, another traceback's.
bool begins_something_else(std::string_view line) {
  constexpr std::string_view kBeginnings[] = {
      "INFO",   "WARN",       "DEBUG", "ERROR",  "LAUNCH ", "terminate called",
      "Fatal ", "Exception ", "*** ",  "Aborted"};
  if (trimmed(line).empty() || contains(line, kHeader) || is_chain_marker(line)) return true;
  const auto digit = [&](std::size_t i) { return line.size() > i && line[i] >= '0' && line[i] <= '9'; };
  if (digit(0) && digit(1) && digit(2) && digit(3) && line.size() > 4 && (line[4] == '-' || line[4] == '/'))
    return true;
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return line.starts_with(beginning); });
}

/// `  File "/x/train.py", line 3, in step` as "train.py:step"; rich's `│ /x/train.py:3 in step │` too.
std::optional<std::string> place_of(std::string_view line) {
  std::string_view file, function;
  const std::string_view frame = trimmed(line);
  if (frame.starts_with("File \"")) {
    file = frame.substr(6);
    file = file.substr(0, file.find('"'));
    const std::size_t in = frame.rfind(", in ");
    if (in != std::string_view::npos) function = frame.substr(in + 5);
  } else if (const std::size_t in = frame.find(" in ");
             frame.starts_with("│ /") && in != std::string_view::npos) {
    file = frame.substr(0, in);
    file = file.substr(0, file.rfind(':'));
    function = trimmed(frame.substr(in + 4));
    function = function.substr(0, function.find(' '));
  } else {
    return std::nullopt;
  }
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::string(function);
}

bool is_frame(std::string_view text) {
  return text.starts_with("  ") || text.starts_with("\t");
}

/// The lines that belong to the exception whose line is `at`. Nothing marks the end of a message: what goes
/// on for long is not a message, but what the process wrote next.
void read_message(const Lines& lines, std::size_t at, std::string_view prefix, Traceback& traceback) {
  traceback.exception = without_prefix(lines[at], prefix);
  traceback.message = traceback.exception;
  traceback.last = at;
  std::size_t end = at + 1;
  for (; end < lines.size(); ++end) {
    if (end > at + kMaxMessageLines) return;
    if (!prefix.empty() && !lines[end].starts_with(prefix)) break;
    if (begins_something_else(without_prefix(lines[end], prefix))) break;
  }
  for (std::size_t i = at + 1; i < end; ++i)
    traceback.message.append("\n").append(without_prefix(lines[i], prefix));
  traceback.last = end - 1;
}

Traceback read_traceback(const Lines& lines, std::size_t header) {
  Traceback traceback;
  traceback.first = traceback.last = header;
  std::string_view prefix = lines[header].substr(0, lines[header].find(kHeader));
  traceback.nested =
      prefix.ends_with("Original ");  // "Original Traceback …": of a process that handed it over
  if (traceback.nested) prefix.remove_suffix(9);
  std::size_t i = header + 1;
  for (; i < lines.size() && is_frame(without_prefix(lines[i], prefix)); ++i) {
    if (auto place = place_of(without_prefix(lines[i], prefix))) traceback.place = std::move(*place);
    traceback.last = i;
  }
  if (i < lines.size() && !trimmed(without_prefix(lines[i], prefix)).empty())
    read_message(lines, i, prefix, traceback);
  return traceback;
}

/// "+ Exception Group Traceback …": everything below it that begins with a blank and a '|' or '+'.
Traceback read_group(const Lines& lines, std::size_t header) {
  Traceback traceback;
  traceback.first = traceback.last = header;
  for (std::size_t i = header + 1; i < lines.size(); ++i) {
    const std::string_view text = trimmed(lines[i]);
    if (!lines[i].starts_with(" ") || (!text.starts_with("|") && !text.starts_with("+"))) break;
    traceback.last = i;
    const std::string_view inside = text.substr(1);
    if (auto place = place_of(inside)) {
      if (traceback.exception.empty()) traceback.place = std::move(*place);
    } else if (traceback.exception.empty() && text[0] == '|' && !is_frame(inside) && contains(inside, ": ")) {
      traceback.exception = trimmed(inside);
    }
    if (text[0] == '|') traceback.message.append(trimmed(inside)).append("\n");
  }
  return traceback;
}

/// A box of `rich`, then the exception below it.
Traceback read_box(const Lines& lines, std::size_t header) {
  Traceback traceback;
  traceback.first = traceback.last = header;
  std::size_t i = header + 1;
  for (; i < lines.size(); ++i) {
    traceback.last = i;
    if (auto place = place_of(lines[i])) traceback.place = std::move(*place);
    if (trimmed(lines[i]).starts_with("╰") || trimmed(lines[i]).starts_with("+--")) break;
  }
  if (i + 1 < lines.size() && !trimmed(lines[i + 1]).empty()) read_message(lines, i + 1, {}, traceback);
  return traceback;
}

bool is_chained(const Lines& lines, const Traceback& before, const Traceback& after) {
  if (after.nested || (after.first > 0 && contains(lines[after.first - 1], "\"\"\"")))
    return after.first <= before.last + 2;
  for (std::size_t i = before.last + 1; i < after.first; ++i) {
    if (is_chain_marker(lines[i])) return true;
  }
  return false;
}

/// Tracebacks that do not end the process: Python goes on after it has noted them.
bool is_only_noted(const Lines& lines, std::size_t header) {
  if (header == 0) return false;
  const std::string_view before = lines[header - 1];
  return contains(before, "Exception ignored in") || contains(before, "Exception in thread") ||
         contains(before, "--- Logging error ---") || contains(before, "_run_exitfuncs") ||
         contains(before, "Task exception was never retrieved");
}

FailurePiece piece_of(const Lines& lines, const std::vector<Traceback>& chain) {
  const Traceback& origin = chain.front();
  const Traceback& last = chain.back();
  FailurePiece piece;
  piece.family = FailureFamily::python;
  piece.strength = is_only_noted(lines, origin.first) ? kNoted : kFatal;
  piece.first = origin.first;
  piece.last = last.last;
  piece.summary = last.exception;
  if (last.nested) {
    piece.summary = chain[chain.size() - 2].exception + " " + last.exception;
    piece.origin = last.message;
  } else {
    piece.origin = origin.message;
  }
  if (piece.summary.empty()) piece.summary = "a traceback without its end";
  if (piece.origin.empty()) piece.origin = piece.summary;
  piece.identity = piece.summary + " @ " + last.place;
  return piece;
}

/// `  File "x.py", line 1` without a header, then "SyntaxError: …": what Python prints about the script
/// itself.
void find_syntax_errors(const Lines& lines, std::vector<FailurePiece>& found) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_error = lines[i].starts_with("SyntaxError: ") ||
                          lines[i].starts_with("IndentationError: ") || lines[i].starts_with("TabError: ");
    if (!is_error) continue;
    std::size_t first = i;
    while (first > 0 && is_frame(lines[first - 1]) && i - first < 4) --first;
    if (first == i || !trimmed(lines[first]).starts_with("File \"")) continue;
    FailurePiece piece{FailureFamily::python, kFatal, first, i, std::string(lines[i]), {}, {}};
    piece.identity = piece.summary + " @ " + place_of(lines[first]).value_or("");
    found.push_back(std::move(piece));
  }
}

}  // namespace

void find_tracebacks(const Lines& lines, std::vector<FailurePiece>& found) {
  std::vector<Traceback> chain;
  const auto close_chain = [&] {
    if (!chain.empty()) found.push_back(piece_of(lines, chain));
    chain.clear();
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t at = lines[i].find(kHeader);
    if (at == std::string_view::npos || lines[i].substr(0, at).ends_with("C++ ")) continue;
    Traceback traceback;
    if (lines[i].substr(0, at).ends_with("Exception Group "))
      traceback = read_group(lines, i);
    else if (lines[i].substr(at + kHeader.size()).starts_with(":"))
      traceback = read_traceback(lines, i);
    else
      traceback = read_box(lines, i);
    if (!chain.empty() && !is_chained(lines, chain.back(), traceback)) close_chain();
    i = std::max(i, traceback.last);
    chain.push_back(std::move(traceback));
  }
  close_chain();
  find_syntax_errors(lines, found);
}

}  // namespace fleetrun::launcher
