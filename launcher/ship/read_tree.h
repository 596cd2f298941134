// Files and folders of this machine as items of a list, with where they lie.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/ship/ship_list.h"

namespace fleetrun::launcher::ship {

/// A list and, for each of its items, the file here. `launcher`: the program that the hosts get first, to
/// be the agent that takes the rest. Not changed any more once it is shared.
struct Cargo {
  List list;
  std::vector<std::string> sources;
  std::string launcher;
  std::string root;  // on the hosts: a path, or one that begins with "~/"
};

/// Adds the regular file `source` as `path`, with its digest. Throws: Error(host) where it cannot be read.
void add_file(Cargo& cargo, const std::string& source, const std::string& path);

/// Says where the interpreter of a virtual environment lies. It is not the same file on the hosts, where it
/// is written from the head's, which has this name there.
constexpr std::string_view kEnvironmentFile = "/pyvenv.cfg", kAdapted = ".from";

struct TreeChoice {
  bool environment = false;             // a virtual environment: everything counts
  std::vector<std::string> left_out;    // patterns (fnmatch) of names, or of paths below the folder
  std::vector<std::string> not_inside;  // absolute paths that are left out
};

/// Adds the folder or file at `path` (absolute) with what is in it, below the list's prefix. Left out are
/// what others make anew (.git, __pycache__ …), virtual environments, and what is neither file, folder nor
/// link. A link that leads to a file outside of the folder becomes that file. Throws: Error(host) for what
/// cannot be read.
void add_tree(Cargo& cargo, const std::string& path, const TreeChoice& choice);

/// Adds the directory at `path` without what is in it, and those above it.
void add_directory(Cargo& cargo, const std::string& path);

/// The digest of a file's content. Throws: Error(host).
std::uint64_t digest_of_file(const std::string& path);

std::uint64_t bytes_of(const List& list) noexcept;

}  // namespace fleetrun::launcher::ship
