// Datasets: what reads text files, and what all sources of batches have in common.

#include <nanobind/stl/chrono.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataset/queue/queue_dataset.h"
#include "runtime/python/bindings.h"

namespace fleetrun::python {

namespace {

using dataset::BadLineReport;
using dataset::BatchSource;
using dataset::QueueDataset;
using dataset::QueueDatasetOptions;
using dataset::Slot;
using dataset::SlotType;

/// name, type, dense, width, used
using SlotTuple = std::tuple<std::string, std::string, bool, std::int64_t, bool>;

void set_slots(QueueDatasetOptions& options, const std::vector<SlotTuple>& slots) {
  options.slots.clear();
  for (const auto& [name, type, dense, width, used] : slots)
    options.slots.push_back(
        {name, type == "float32" ? SlotType::float32 : SlotType::int64, dense, width, used});
}

/// A property that is a member of a part of the options.
template <class Part, class Value>
void add_part(nb::class_<QueueDatasetOptions>& options, const char* name, Part QueueDatasetOptions::*part,
              Value Part::*member) {
  options.def_prop_rw(
      name, [=](const QueueDatasetOptions& self) { return self.*part.*member; },
      [=](QueueDatasetOptions& self, Value value) { self.*part.*member = std::move(value); });
}

void bind_options(nb::module_& module) {
  using dataset::LinePrefixes;
  using dataset::PipeOptions;
  nb::class_<QueueDatasetOptions> options(
      module, "DatasetOptions",
      "What is read, and how: files, pipe, slots. pipe_timeout: a timedelta, or seconds; 0 for none.");
  options.def(nb::init<>())
      .def_prop_rw("slots", nullptr, &set_slots)
      .def_prop_rw("bad_line", nullptr,
                   [](QueueDatasetOptions& self, const std::string& text) {
                     self.bad_lines = dataset::bad_line_policy_of(text);
                   })
      .def_rw("schema", &QueueDatasetOptions::schema)
      .def_rw("batch_size", &QueueDatasetOptions::batch_size)
      .def_rw("threads", &QueueDatasetOptions::threads)
      .def_rw("files", &QueueDatasetOptions::files)
      .def_rw("allows_no_files", &QueueDatasetOptions::allows_no_files)
      .def_rw("drop_last", &QueueDatasetOptions::drop_last)
      .def_rw("starts_next_pass", &QueueDatasetOptions::starts_next_epoch)
      .def_prop_rw("download_command", nullptr,
                   [](QueueDatasetOptions& self, std::string text) {
                     self.pipe.remote.download_command = std::move(text);
                   })
      .def_prop_rw(
          "fs_name", nullptr,
          [](QueueDatasetOptions& self, std::string text) { self.pipe.remote.fs_name = std::move(text); })
      .def_prop_rw("fs_ugi", nullptr, [](QueueDatasetOptions& self, std::string text) {
        self.pipe.remote.fs_ugi = std::move(text);
      });
  add_part(options, "parse_ins_id", &QueueDatasetOptions::prefixes, &LinePrefixes::id);
  add_part(options, "parse_content", &QueueDatasetOptions::prefixes, &LinePrefixes::content);
  add_part(options, "parse_logkey", &QueueDatasetOptions::prefixes, &LinePrefixes::log_key);
  add_part(options, "pipe_command", &QueueDatasetOptions::pipe, &PipeOptions::command);
  add_part(options, "pipe_argv", &QueueDatasetOptions::pipe, &PipeOptions::argv);
  add_part(options, "pipe_timeout", &QueueDatasetOptions::pipe,
           &PipeOptions::timeout);  // a timedelta, or seconds
}

}  // namespace

void bind_dataset(nb::module_& module) {
  bind_options(module);
  nb::class_<BadLineReport>(module, "BadLineReport",
                            "The lines of a pass that were left out: how many, and where the first were.")
      .def_ro("count", &BadLineReport::count)
      .def_ro("places", &BadLineReport::places);
  nb::class_<BatchSource>(module, "BatchSource", "What gives batches to passes.");
  nb::class_<QueueDataset, BatchSource>(module, "QueueDataset",
                                        "Batches of text files that go through a pipe command.")
      .def(make<QueueDataset, QueueDatasetOptions>(), "options"_a,
           "Throws: Error(config), Error(data) for a file that is missing.")
      .def("bad_lines", &QueueDataset::bad_lines, "Those of the last pass.");
}

}  // namespace fleetrun::python
