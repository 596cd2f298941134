// The command line of fleetrun-ps, read by hand: `fleetrun ps` finds the job
// and adds where its servers are. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::ps {

struct ToolRequest {
  enum class Command { help, stat, get, shrink, save, export_rows };
  Command command = Command::help;
  std::string about;  // help: the command that it is about; empty: all of them
  std::vector<std::string> words;
  std::vector<std::uint64_t> keys;  // get
  int mode = 0;                     // save
  std::uint64_t since = 0;          // export
  bool json = false;
  bool watch = false;
  std::vector<std::string> endpoints;  // in rank order
  std::string secret_file;             // empty: as a process of the job would find it
  bool insecure = false;
  std::chrono::milliseconds timeout{10000};
};

/// Flags may be written with '-' or '_', and as --flag=VALUE or --flag VALUE. Keys are whole numbers of 64
/// bits; a negative one is the key that a trainer's int64 of that value is.
/// Throws: Error(usage) naming the word that is wrong; the hint names the help.
ToolRequest parse_tool_arguments(const std::vector<std::string>& arguments);

/// `about`: "", or a command.
std::string tool_help(const std::string& about);

}  // namespace fleetrun::ps
