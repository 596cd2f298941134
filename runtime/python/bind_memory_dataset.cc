// Examples in memory: loading, shuffles, and what a pass reads.

#include <memory>
#include <string>
#include <vector>

#include "dataset/memory/in_memory_dataset.h"
#include "runtime/base/environ.h"
#include "runtime/base/recovery_words.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"
#include "runtime/trainer/global_shuffle.h"

namespace fleetrun::python {

namespace {

using dataset::BatchSource;
using dataset::InMemoryDataset;
using DatasetPtr = std::shared_ptr<InMemoryDataset>;
using runtime::GlobalShuffle;

InMemoryDataset::Load load_of(std::shared_ptr<BatchSource> source, bool ids, bool contents, bool drop_zeros) {
  return {
      .source = std::move(source), .prefixes = {.id = ids, .content = contents}, .drop_zeros = drop_zeros};
}

void load(const DatasetPtr& self, std::shared_ptr<BatchSource> source, bool ids, bool contents,
          bool drop_zeros, bool background) {
  const InMemoryDataset::Load what = load_of(std::move(source), ids, contents, drop_zeros);
  run_interruptibly([=] { background ? self->preload(what) : self->load(what); },
                    [self] { self->stop_loading(); });
}

nb::dict merge(const DatasetPtr& self, std::size_t merge_size) {
  const auto counts = std::make_shared<dataset::MergeCounts>();
  run_interruptibly([=] { *counts = self->merge_by_line_id(merge_size); });
  nb::dict out;
  out["merged"] = counts->merged;
  out["wrong_size"] = counts->wrong_size;
  out["conflicts"] = counts->conflicts;
  return out;
}

std::shared_ptr<GlobalShuffle> make_shuffle(const std::string& host, std::uint32_t rank,
                                            std::uint32_t trainers) {
  return std::make_shared<GlobalShuffle>(runtime::GlobalShuffleOptions{
      .host = host, .rank = rank, .trainers = trainers, .access = ps::access_of(Environ::of_process())});
}

void global_shuffle(const DatasetPtr& self, const std::shared_ptr<GlobalShuffle>& exchange, bool by_id,
                    std::size_t threads) {
  const auto destination = by_id ? dataset::Destination::line_id : dataset::Destination::random;
  run_interruptibly([=] { self->global_shuffle(*exchange, destination, threads); });
}

}  // namespace

void bind_memory_dataset(nb::module_& module) {
  module.def(
      "cannot_go_on_alone",
      [](const std::string& who, const std::string& why) {
        return who + std::string(kCannotGoOnAlone) + why;
      },
      "who"_a, "why"_a,
      "The message of an error after which the launcher starts all processes of the job again.");
  nb::class_<GlobalShuffle>(module, "GlobalShuffle",
                            "This trainer's part of a shuffle over all trainers: it listens from the start.")
      .def(nb::new_(&make_shuffle), "host"_a, "rank"_a, "trainers"_a)
      .def_prop_ro("port", &GlobalShuffle::port, "Where it listens.")
      .def("set_endpoints", &GlobalShuffle::set_endpoints, "endpoints"_a,
           "HOST:PORT of all trainers, by rank.");
  nb::class_<InMemoryDataset, BatchSource>(module, "InMemoryDataset", "Examples in memory.")
      .def(make<InMemoryDataset, std::uint32_t>(), "trainer"_a)
      .def("load", load, "source"_a, "ids"_a, "contents"_a, "drop_zeros"_a, "background"_a,
           "Reads all of `source`; background: returns at once. Throws: Error(data), and nothing is in "
           "memory then.")
      .def("wait_preload",
           [](const DatasetPtr& self) {
             run_interruptibly([self] { self->wait_preload(); }, [self] { self->stop_loading(); });
           })
      .def("release", &InMemoryDataset::release, "Gives the memory back.")
      .def("set_seed", &InMemoryDataset::set_seed, "seed"_a, "Decides every order that follows.")
      .def("local_shuffle",
           [](const DatasetPtr& self, std::size_t threads) {
             run_interruptibly([=] { self->local_shuffle(threads); });
           })
      .def("global_shuffle", global_shuffle, "exchange"_a, "by_id"_a, "threads"_a,
           "Deals the examples of all trainers out again. Throws: Error(network), Error(data).")
      .def("shuffle_slots",
           [](const DatasetPtr& self, const std::vector<std::string>& slots, std::size_t candidates) {
             run_interruptibly([=] { self->shuffle_slots(slots, candidates); });
           })
      .def("merge_by_line_id", merge, "merge_size"_a,
           "Makes one example of those of one id; how many: {merged, wrong_size, conflicts}.")
      .def_prop_ro("rows", &InMemoryDataset::rows, "Examples in memory.")
      .def_prop_ro("bytes", &InMemoryDataset::bytes, "Bytes that they take.")
      .def_prop_ro("is_loaded", &InMemoryDataset::is_loaded)
      .def(
          "set_reading",
          [](InMemoryDataset& self, std::size_t batch_size, std::size_t threads, bool drop_last) {
            self.set_reading({.batch_size = batch_size, .threads = threads, .drop_last = drop_last});
          },
          "batch_size"_a, "threads"_a, "drop_last"_a);
}

}  // namespace fleetrun::python
