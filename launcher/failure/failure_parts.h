// What the recognisers of failure_text share. Not for others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/failure/failure_text.h"

namespace fleetrun::launcher {

using Lines = std::vector<std::string_view>;

/// One recognised piece of a log.
struct FailurePiece {
  FailureFamily family = FailureFamily::message;
  int strength = 0;                 // the strongest is believed, and of equals the last
  std::size_t first = 0, last = 0;  // its lines, both included
  std::string summary;
  std::string identity;  // what the signature is made of
  std::string origin;    // the words that decide whether it follows from another failure; empty: the summary
};

constexpr int kPlain = 0, kNoted = 1, kTold = 2, kFatal = 3;  // strengths

/// Tracebacks of Python, chains as one piece.
void find_tracebacks(const Lines& lines, std::vector<FailurePiece>& found);

/// Everything that one line gives away, and the lines that belong to it.
void find_marked_lines(const Lines& lines, std::vector<FailurePiece>& found);

std::string_view trimmed(std::string_view text);

bool contains(std::string_view text, std::string_view part);

/// `part` is lower case; ASCII only.
bool contains_any_case(std::string_view text, std::string_view part);

}  // namespace fleetrun::launcher
