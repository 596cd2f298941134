#include "dataset/columnar/queue_columns.h"

#include <algorithm>

#include "dataset/columnar/columnar_file.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {

ColumnarDatasetOptions columns_for_queue(const QueueDatasetOptions& options) {
  const auto text = std::find_if_not(options.files.begin(), options.files.end(), is_columnar);
  if (text != options.files.end())
    throw Error(
        ErrorKind::config,
        printable(*text) + " is not a columnar file, and others of the " +
            std::to_string(options.files.size()) + " files are",
        "give set_filelist() files of one kind; fleetrun data convert makes columnar ones (.frc) of text");
  const std::string command = command_text(options.pipe);
  if (!command.empty())
    throw Error(ErrorKind::config, "a pipe command, '" + printable(command) + "', with columnar files",
                "it is for text: run it when the text is converted, fleetrun data convert --pipe_command");
  if (options.prefixes.any())
    throw Error(ErrorKind::config, "ids, contents or log keys of lines, with columnar files",
                "they are in text only");
  if (!options.schema.empty())
    throw Error(ErrorKind::config, "a schema, " + printable(options.schema) + ", with columnar files",
                "it is for text; columnar files have their slots already");
  ColumnarDatasetOptions columns{.slots = {},
                                 .files = options.files,
                                 .batch_size = options.batch_size,
                                 .threads = options.threads,
                                 .drop_last = options.drop_last};
  for (const Slot& slot : options.slots)
    if (slot.used) columns.slots.push_back(slot);
  return columns;
}

}  // namespace fleetrun::dataset
