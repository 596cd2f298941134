// The recognisers say what they found; the strongest, and of equals the last, is what the log says.
#include "launcher/failure/failure_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "launcher/failure/failure_parts.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxBlockBytes = 8 * 1024;
constexpr std::size_t kMaxSummaryBytes = 300;
constexpr std::size_t kLinesAfter = 20;  // at most, for what stands at the end of a log

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A long block keeps its beginning and, being what matters, more of its end.
std::string block_of(const Lines& lines, const FailurePiece& piece) {
  std::string block;
  for (std::size_t i = piece.first; i <= piece.last; ++i) block.append(lines[i]).append("\n");
  if (block.size() <= kMaxBlockBytes) return block;
  const std::size_t head_end = block.rfind('\n', kMaxBlockBytes / 4);
  const std::size_t tail_begin = block.find('\n', block.size() - kMaxBlockBytes * 3 / 4);
  if (head_end == std::string::npos || tail_begin == std::string::npos || tail_begin + 1 == block.size())
    return block.substr(block.size() - kMaxBlockBytes);
  return block.substr(0, head_end + 1) + "…\n" + block.substr(tail_begin + 1);
}

std::string short_summary(const std::string& text) {
  if (text.size() <= kMaxSummaryBytes) return text;
  std::size_t end = kMaxSummaryBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "…";
}

/// One escape sequence at the beginning of `text`: its length.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    std::size_t i = 2;
    while (i < text.size() && (text[i] < 0x40 || text[i] > 0x7e) && text[i] != '\n') ++i;
    return std::min(i + 1, text.size());
  }
  if (text[1] == ']') {
    for (std::size_t i = 2; i < text.size() && text[i] != '\n'; ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return std::min(i + 2, text.size());
    }
    return 2;
  }
  return 2;
}

bool says_memory_ran_out(std::string_view text) {
  constexpr std::array kWords = {"memoryerror",
                                 "bad_alloc",
                                 "out of memory",
                                 "outofmemory",
                                 "std::bad_array_new_length",
                                 "cannot allocate memory",
                                 "unable to allocate",
                                 "resource_exhausted: memory",
                                 "cuda_error_out_of_memory"};
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* w) { return contains_any_case(text, w); });
}

/// Replaces runs of digits, with what joins them to times and versions, by N. Returns where it ended.
std::size_t fold_number(std::string_view text, std::size_t i) {
  constexpr std::string_view kJoints = ".:,-+/TZ_";
  for (;;) {
    while (i < text.size() && is_digit(text[i])) ++i;
    if (i + 1 < text.size() && kJoints.find(text[i]) != std::string_view::npos && is_digit(text[i + 1]))
      ++i;
    else
      return i;
  }
}

/// The length of a word of eight or more hexadecimal digits, some of them decimal; 0 for any other word.
std::size_t hash_length(std::string_view text) {
  std::size_t length = 0, digits = 0;
  while (length < text.size() && (is_hex(text[length]) || (text[length] == '-' && length > 0))) {
    digits += is_digit(text[length]);
    ++length;
  }
  const bool ends = length == text.size() || !std::isalnum(static_cast<unsigned char>(text[length]));
  return length >= 8 && digits > 0 && ends ? length : 0;
}

/// The length of "/tmp/ANYTHING" up to the next slash; 0 elsewhere.
std::size_t temporary_length(std::string_view text) {
  for (const std::string_view place : {"/tmp/", "/var/tmp/", "/dev/shm/", "/run/user/"}) {
    if (!text.starts_with(place)) continue;
    std::size_t i = place.size();
    while (i < text.size() && std::string_view("/'\"`), \t:").find(text[i]) == std::string_view::npos) ++i;
    return i;
  }
  return 0;
}

}  // namespace

std::string_view to_string(FailureFamily family) noexcept {
  constexpr std::string_view kNames[] = {"python", "terminate", "glibc",   "sanitizer", "faulthandler",
                                         "paddle", "panic",     "library", "device",    "message"};
  return kNames[static_cast<int>(family)];
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_any_case(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  std::size_t line = 0;  // where the current line begins in `plain`
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\x1b') {
      i += escape_length(text.substr(i));
      continue;
    }
    ++i;
    if (c == '\n') {
      plain += c;
      line = plain.size();
    } else if (c == '\r') {
      const std::size_t after = text.find_first_not_of('\r', i);
      if (after != std::string_view::npos && text[after] != '\n') plain.resize(line);  // overwritten
    } else if (const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(i - 1)), 1);
               c == '\t' || !acts_on_terminal(text.substr(i - 1, length))) {
      plain.append(text, i - 1, length);
      i += length - 1;
    }
  }
  return plain;
}

std::string folded(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (const std::size_t length = temporary_length(rest)) {
      out += "/tmp/*";
      i += length;
    } else if (rest.size() > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') && is_hex(rest[2])) {
      for (i += 2; i < text.size() && is_hex(text[i]);) ++i;
      out += "0xN";
    } else if (const std::size_t hash = in_word ? 0 : hash_length(rest)) {
      out += 'N';
      i += hash;
    } else if (is_digit(rest[0])) {
      out += 'N';
      i = fold_number(text, i);
    } else {
      const bool blank = std::isspace(static_cast<unsigned char>(rest[0])) != 0;
      if (!blank)
        out += rest[0];
      else if (!out.empty() && out.back() != ' ')
        out += ' ';
      ++i;
    }
    in_word = i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1]));
  }
  return out;
}

bool is_port_clash(std::string_view text) {
  constexpr std::array kWords = {"address already in use", "eaddrinuse", "address in use",
                                 "port is already allocated", "only one usage of each socket address"};
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* w) { return contains_any_case(text, w); });
}

bool is_consequence(std::string_view text) {
  constexpr std::array kWords = {
      // the other end is gone
      "connectionreseterror", "brokenpipeerror", "connectionrefusederror", "connectionabortederror",
      "connection reset", "broken pipe", "connection refused", "connection closed", "connection was closed",
      "connection lost", "closed connection", "closed the connection", "socket closed", "socket is closed",
      "got 0 bytes", "unexpected eof", "end of file", "incompleteread", "no route to host",
      "host is unreachable", "endpoint is not connected", " is gone: ", "has lost its connection",
      "peer is gone", "peer gone", "peer closed", "failed to connect", "statuscode.unavailable",
      "brokenbarriererror", "econnreset", "epipe", "econnrefused",
      // a collective operation that a peer left
      "ncclremoteerror", "remote process exited", "communicator was aborted", "recvvalue failed",
      "sendbytes failed", "collective operation timeout", "remote rank",
      // waiting for somebody in vain
      "timed out", "timeouterror", "deadline exceeded", "timeout expired",
      // being told to stop
      "keyboardinterrupt", "systemexit", "sigterm", "sigint", "sighup", "signal 15", "signalexception"};
  const bool empty_file = contains_any_case(text, "ran out of input");  // EOFError of an empty file
  if (!empty_file && contains_any_case(text, "eoferror")) return true;
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* w) { return contains_any_case(text, w); });
}

std::optional<FailureText> find_failure(std::string_view log) {
  if (log.size() > kFailureTextBytes) log.remove_prefix(log.size() - kFailureTextBytes);
  const std::string plain = plain_text(log);
  const Lines lines = lines_of(plain);
  std::vector<FailurePiece> found;
  find_tracebacks(lines, found);
  find_marked_lines(lines, found);
  const auto believed = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.strength != b.strength ? a.strength < b.strength : a.last < b.last;
  });
  if (believed == found.end()) return std::nullopt;
  FailureText text;
  text.family = believed->family;
  text.summary = short_summary(believed->summary);
  text.block = block_of(lines, *believed);
  text.signature = std::string(to_string(text.family)) + " " +
                   short_summary(folded(believed->identity.empty() ? believed->summary : believed->identity));
  text.consequence = is_consequence(believed->origin.empty() ? believed->summary : believed->origin);
  text.out_of_memory = says_memory_ran_out(believed->summary);
  text.at_end = lines.size() - believed->last <= kLinesAfter;
  return text;
}

std::string last_line(std::string_view log) {
  if (log.size() > kFailureTextBytes) log.remove_prefix(log.size() - kFailureTextBytes);
  const std::string plain = plain_text(log);
  const Lines lines = lines_of(plain);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view words = trimmed(*line);
    if (!words.empty()) return short_summary(std::string(words));
  }
  return {};
}

}  // namespace fleetrun::launcher
