// The curves of a training, read from what its trainers wrote while it ran: files of events
// (runtime/trainer/event_file.h), or logs with the lines that train_from_dataset prints.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

namespace fleetrun::trace {

struct Sample {
  /// Batches of the first thread since the beginning, over all passes.
  double batches = 0;
  double value = 0;
};

/// The values of one trainer.
struct Series {
  std::string name;  // "trainer 0"
  std::vector<Sample> samples;
};

/// By the name of what was fetched.
using Curves = std::map<std::string, std::vector<Series>>;

/// Adds what `text` has as a series of this name; values that are not numbers are left out. Lines that are
/// neither events nor printed values are passed over, and so is one that is not whole.
/// Returns the number of lines that were taken.
std::size_t add_series(std::istream& text, const std::string& name, Curves& curves);

/// Reads files, and all trainers' event files of folders.
/// Throws: Error(usage) for what is not there; Error(data) for a file or folder without values.
Curves read_curves(const std::vector<std::string>& paths);

/// The same as one line of JSON, without its newline:
/// {"loss":[{"name":"trainer 0","batches":[100,200],"values":[0.53,0.51]}]}
std::string to_json(const Curves& curves);

}  // namespace fleetrun::trace
