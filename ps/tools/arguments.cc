#include "ps/tools/arguments.h"

#include <charconv>
#include <map>
#include <string_view>

#include "dataset/pipes/remote_file.h"
#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

using Command = ToolRequest::Command;

const std::map<std::string, Command, std::less<>> kCommands = {{"export", Command::export_rows},
                                                               {"get", Command::get},
                                                               {"save", Command::save},
                                                               {"shrink", Command::shrink},
                                                               {"stat", Command::stat}};

constexpr const char* kHelp = R"(usage: fleetrun ps COMMAND [ARGUMENT]… [--job JOB]

Looks into the parameter servers of a running job of yours. JOB is a pod or a job id; without it there has to
be one job only. The servers go on working meanwhile, and no trainer waits for it.

  stat             what each server holds and has done: rows, calls, bytes, times
  get TABLE KEY…   rows as they are stored, without making any
  resize N         have N processes serve the servers of a job that was started with --server_num=N:MOST
  shrink [TABLE]   erase the rows that a table's accessor lets expire; without TABLE in all sparse tables
  save DIR         save all tables below DIR, on each server's own host, or to a place like s3://bucket/model
  export DIR       save what has changed since an earlier export, for a system that serves the model

  --job JOB            the job
  --endpoints LIST     instead of a job: HOST:PORT of all servers, in rank order, with commas between
  --secret_file FILE   the job's secret, with --endpoints; without it FLEETRUN_SECRET_FILE, or your own secret
  --insecure           the job was started with --insecure
  --timeout SECONDS    how long servers may take to answer (default 10)
  --help, -h           show this; after a command, what it does

fleetrun-ps(7) explains tables, modes and saves.
)";

constexpr const char* kStatHelp = R"(usage: fleetrun ps stat [--json] [--watch]

Shows for each table its rows, and for each kind of call how many there were, their bytes, and their times:
p50 and p99 are the times that half and 99 in 100 of the calls were not above, from a histogram that is at
most 1/32 too high. In a job with several servers there is a line for each server, and the skew: the rows of
the fullest server over the mean.

  --json    one line of JSON for each server, in rank order; ps/server/stat_json.h says what is in it
  --watch   again once a second, until Ctrl-C; counts and times are then those of the last second
)";

constexpr const char* kGetHelp = R"(usage: fleetrun ps get TABLE KEY… [--json]

Shows the rows of a sparse table (by its name) that have these keys, or that they have none. A key without a
row does not get one. Where the table has an accessor that keeps statistics, its slot, unseen days, delta
score, show and click come first. KEY is a whole number of 64 bits; write -- before negative ones. Of a dense
table, and then without keys, all values are shown.

  --json    one line of JSON for each key (of a dense table: one line)

example: fleetrun ps get emb 17 42
)";

constexpr const char* kShrinkHelp = R"(usage: fleetrun ps shrink [TABLE]

Ends a day: in a sparse table whose accessor keeps statistics, show and click decay, and rows whose score fell
below delete_threshold, or that were unseen for more than delete_after_unseen_days, are erased.
Says how many. Training goes on.
)";

constexpr const char* kSaveHelp = R"(usage: fleetrun ps save DIR [--mode N]

Saves all tables below DIR, each server its part on its own host, while training goes on. The save is whole or
not there at all, and the one before it stays until this one is complete.
Servers load it again, in any number.

  --mode N   0 all rows (default), 1 those whose score has grown by their accessor's delta_threshold since the
             last save of mode 1 or 2 (at the default of 0, and in tables without statistics, all), 2 those
             that make up a model to serve, 3 a checkpoint: all rows, and a day passes for the statistics
)";

constexpr const char* kExportHelp = R"(usage: fleetrun ps export DIR [--since N] [--json]

Saves below DIR the rows of all tables that have changed since the export of number N, and the keys whose rows
have gone; without --since all rows. Prints the number of this export. Who loads an export of all rows, and
those after it in their order, has exactly what the servers had, whatever the number of its own servers. Each
export needs a directory of its own. From the first one on a server keeps 4 bytes for each row in memory.

Where numbers do not continue, because the servers were started again or have loaded tables since, this is
refused: begin again with all rows.

  --since N   the number of an earlier export
  --json      {"number": …, "since": …}

example: fleetrun ps export /models/ctr-1; fleetrun ps export /models/ctr-2 --since 1764000000000000
)";

constexpr const char* kHelpHint = "fleetrun ps --help lists the commands and their flags";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::usage, what, kHelpHint);
}

std::uint64_t key_of(const std::string& word) {
  const bool is_negative = word.starts_with('-');
  const char* end = word.data() + word.size();
  std::uint64_t key = 0;
  std::int64_t negative = 0;
  const auto read =
      is_negative ? std::from_chars(word.data(), end, negative) : std::from_chars(word.data(), end, key);
  if (word.empty() || read.ec != std::errc() || read.ptr != end)
    refuse("'" + printable(word) + "' is not a key: a whole number of 64 bits");
  return is_negative ? static_cast<std::uint64_t>(negative) : key;
}

void take_flag(ArgumentReader& words, ToolRequest& request) {
  const std::string flag = words.word();
  if (words.is_switch("--json")) {
    request.json = true;
  } else if (words.is_switch("--watch")) {
    request.watch = true;
  } else if (words.is_switch("--insecure")) {
    request.insecure = true;
  } else if (flag == "--endpoints") {
    request.endpoints = split(words.value(), ',');
  } else if (flag == "--secret_file") {
    request.secret_file = words.value();
  } else if (flag == "--timeout") {
    const std::string value = words.value();
    const auto time = parse_duration_ms(value);
    if (!time || *time == 0) refuse("--timeout=" + printable(value) + " is not a time");
    request.timeout = std::chrono::milliseconds(*time);
  } else if (flag == "--mode") {
    const std::string value = words.value();
    const auto mode = parse_integer(value);
    if (!mode || *mode < 0 || *mode > 3) refuse("--mode=" + printable(value) + " is not 0, 1, 2 or 3");
    request.mode = static_cast<int>(*mode);
  } else if (flag == "--since") {
    const std::string value = words.value();
    const auto since = parse_integer(value);
    if (!since || *since < 1) refuse("--since=" + printable(value) + " is not the number of an export");
    request.since = static_cast<std::uint64_t>(*since);
  } else {
    refuse("there is no flag " + printable(flag));
  }
}

void check_words(ToolRequest& request) {
  const std::size_t count = request.words.size();
  switch (request.command) {
    case Command::help:
      return;
    case Command::stat:
      if (count > 0) refuse("stat takes no '" + printable(request.words[0]) + "'");
      break;
    case Command::get:
      if (count == 0) refuse("get needs the name of a table");
      for (std::size_t i = 1; i < count; ++i) request.keys.push_back(key_of(request.words[i]));
      break;
    case Command::shrink:
      if (count > 1) refuse("shrink takes one table, or none for all of them");
      break;
    case Command::save:
    case Command::export_rows: {
      const std::string name = request.command == Command::save ? "save" : "export";
      if (count != 1) refuse(name + " needs one directory");
      if (!request.words[0].starts_with('/') && !dataset::is_remote(request.words[0]))
        refuse(name + " needs an absolute path, not '" + printable(request.words[0]) +
               "': each server writes on its own host, from a directory of its own");
      break;
    }
  }
  if (request.watch && request.command != Command::stat) refuse("--watch belongs to stat");
  if (request.mode != 0 && request.command != Command::save) refuse("--mode belongs to save");
  if (request.since != 0 && request.command != Command::export_rows) refuse("--since belongs to export");
  if (request.endpoints.empty())
    throw Error(ErrorKind::usage, "fleetrun-ps does not know the servers' endpoints",
                "run `fleetrun ps`, which finds your job's, or give --endpoints=HOST:PORT,…");
}

}  // namespace

ToolRequest parse_tool_arguments(const std::vector<std::string>& arguments) {
  ToolRequest request;
  std::optional<std::string> command;
  bool wants_help = arguments.empty();
  ArgumentReader words(arguments, kHelpHint);
  while (words.next()) {
    if (words.is_flag() && (words.is_switch("--help") || words.is_switch("-h")))
      wants_help = true;
    else if (words.is_flag())
      take_flag(words, request);
    else if (!command)
      command = words.word();
    else
      request.words.push_back(words.word());
  }
  if (command && *command == "help") {
    wants_help = true;
    command = request.words.empty() ? std::nullopt : std::optional(request.words[0]);
  }
  if (!command && !wants_help) refuse("fleetrun ps needs a command");
  if (command) {
    const auto found = kCommands.find(*command);
    if (found == kCommands.end()) {
      std::vector<std::string> names;
      for (const auto& [name, which] : kCommands) names.push_back(name);
      const auto meant = nearest(*command, names);
      refuse("there is no command '" + printable(*command) + "'" +
             (meant ? "; did you mean " + *meant + "?" : ""));
    }
    request.command = found->second;
  }
  if (wants_help) {
    request.command = Command::help;
    request.about = command.value_or("");
    return request;
  }
  check_words(request);
  return request;
}

std::string tool_help(const std::string& about) {
  if (about == "stat") return kStatHelp;
  if (about == "get") return kGetHelp;
  if (about == "shrink") return kShrinkHelp;
  if (about == "save") return kSaveHelp;
  if (about == "export") return kExportHelp;
  return kHelp;
}

}  // namespace fleetrun::ps
