// What reading MultiSlot files costs: rows and bytes a second through QueueDataset, one reader, from the file itself
// and through a real pipe; and of the parser alone, in processor time of one thread.
//
//   dataset_bench FILE…     lines of 13 floats, 26 slots of one id, one label (tests/bench/gen_multislot.py)

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "dataset/multi_slot_parser.h"
#include "dataset/queue_dataset.h"

using namespace fleetrun::dataset;

namespace {

constexpr int kRounds = 7;

struct Figure {
  std::size_t rows = 0;
  double seconds = 0;
};

std::vector<Slot> click_slots() {
  std::vector<Slot> slots = {{.name = "dense", .type = SlotType::float32, .dense = true, .width = 13}};
  for (int i = 0; i < 26; ++i)
    slots.push_back({.name = "C" + std::to_string(i), .type = SlotType::int64, .dense = false, .width = 1});
  slots.push_back({.name = "label", .type = SlotType::int64, .dense = true, .width = 1});
  return slots;
}

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Figure parse(const std::string& text) {
  const std::vector<Slot> slots = click_slots();
  const double start = thread_seconds();
  MultiSlotParser parser(slots);
  Batch batch;
  Figure figure;
  parser.begin_batch(batch, 1000);
  for (std::size_t at = 0; at < text.size();) {
    const std::span<char> room = parser.room();
    const std::size_t bytes = std::min(room.size(), text.size() - at);
    std::memcpy(room.data(), text.data() + at, bytes);
    parser.commit(bytes);
    at += bytes;
    while (parser.parse() == MultiSlotParser::Outcome::full) {
      figure.rows += parser.end_batch();
      parser.begin_batch(batch, 1000);
    }
  }
  figure.rows += parser.end_batch();
  figure.seconds = thread_seconds() - start;
  return figure;
}

Figure read(const std::vector<std::string>& files, const std::string& command) {
  QueueDataset dataset({.slots = click_slots(), .pipe_command = command, .batch_size = 1000, .files = files});
  const auto start = std::chrono::steady_clock::now();
  dataset.start(false);
  Batch batch;
  Figure figure;
  while (dataset.next(0, batch)) figure.rows += batch.rows;
  figure.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return figure;
}

/// The median of some rounds, with the slowest and the fastest.
template <class Run>
void report(const char* name, double bytes, Run run) {
  std::vector<Figure> figures;
  for (int round = 0; round < kRounds; ++round) figures.push_back(run());
  std::sort(figures.begin(), figures.end(),
            [](const Figure& a, const Figure& b) { return a.seconds < b.seconds; });
  const auto rate = [&](const Figure& figure) {
    return static_cast<double>(figure.rows) / figure.seconds / 1e6;
  };
  const Figure& median = figures[kRounds / 2];
  std::printf("%-28s %.2f M rows/s (%.2f .. %.2f), %.2f GB/s\n", name, rate(median), rate(figures.back()),
              rate(figures.front()), bytes / median.seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> files(argv + 1, argv + argc);
  if (files.empty()) {
    std::fprintf(stderr, "usage: dataset_bench FILE…\n");
    return 2;
  }
  std::string text;
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  const auto bytes = static_cast<double>(text.size());
  report("parser, from memory", bytes, [&] { return parse(text); });
  report("QueueDataset, the file", bytes, [&] { return read(files, "cat"); });
  report("QueueDataset, pipe (cat -u)", bytes, [&] { return read(files, "cat -u"); });
}
