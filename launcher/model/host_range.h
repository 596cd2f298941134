// Names with ranges in brackets, as Slurm writes them: "node[01-16]", "n[001-010,7]", "r[1-3]x[1-9]". Pure.
//
// Several brackets are every combination, the last one running fastest. A number is as wide as the lower end
// of its range: [08-10] is 08, 09, 10.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

constexpr std::size_t kMaxNamedHosts = 65'536;

/// The names that `word` stands for, in order; a word without brackets stands for itself. What is outside of
/// the brackets is not looked at.
/// Throws: Error(config) for a bracket that is not closed or not opened, an empty, turned or unreadable
/// range, and more than kMaxNamedHosts names; nothing has been made of them then.
std::vector<std::string> expand_range(std::string_view word);

/// "a,n[1,3-4],b" → {"a", "n[1,3-4]", "b"}: commas in brackets do not separate.
std::vector<std::string> split_outside_brackets(std::string_view text, char separator);

/// All names of a list such as SLURM_NODELIST, in order.
/// Throws: as expand_range does, and where a name is empty.
std::vector<std::string> expand_names(std::string_view list);

}  // namespace fleetrun::launcher
