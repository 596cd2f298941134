// What reading MultiSlot text costs, a JSON line for each figure:
// medians with the slowest and the fastest round.
//
//   dataset_bench table FILE…    lines of 13 floats, 26 slots of one id, one label (gen_multislot.py): the
//                                parser from memory, memory itself, a pipe itself,
//                                QueueDataset by file and by pipe
//   dataset_bench reader SCHEMA FILE…  delimited text to batches by a schema (fleetrun-schema(5))
//   dataset_bench scale FOLDER   QueueDataset by threads and by the length of a line;
//                                writes its files to FOLDER
//
// Cycles are those of the time stamp counter, which runs at the processor's nominal rate.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "dataset/queue/queue_dataset.h"
#include "dataset/schema/schema.h"
#include "dataset/text/multi_slot_parser.h"

using namespace fleetrun::dataset;

namespace {

constexpr int kRounds = 7;
constexpr std::size_t kBatch = 1000;

struct Figure {
  std::size_t rows = 0;
  double seconds = 0;
  double cycles = 0;
};

std::vector<Slot> click_slots() {
  std::vector<Slot> slots = {{.name = "dense", .type = SlotType::float32, .dense = true, .width = 13}};
  for (int i = 0; i < 26; ++i) slots.push_back({.name = "C" + std::to_string(i), .type = SlotType::int64});
  slots.push_back({.name = "label", .type = SlotType::int64, .dense = true, .width = 1});
  return slots;
}

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Time stamps a second.
double counter_rate() {
  const double start = wall_seconds();
  const unsigned long long first = __rdtsc();
  while (wall_seconds() - start < 0.1) {
  }
  return static_cast<double>(__rdtsc() - first) / (wall_seconds() - start);
}

Figure parse(const std::string& text) {
  const std::vector<Slot> slots = click_slots();
  const double start = thread_seconds();
  MultiSlotParser parser(slots);
  Batch batch;
  Figure figure;
  parser.begin_batch(batch, kBatch);
  for (std::size_t at = 0; at < text.size();) {
    const std::span<char> room = parser.room();
    const std::size_t bytes = std::min(room.size(), text.size() - at);
    std::memcpy(room.data(), text.data() + at, bytes);
    parser.commit(bytes);
    at += bytes;
    while (parser.parse() == MultiSlotParser::Outcome::full) {
      figure.rows += parser.end_batch();
      parser.begin_batch(batch, kBatch);
    }
  }
  figure.rows += parser.end_batch();
  figure.seconds = thread_seconds() - start;
  return figure;
}

/// Adds up the text's words: what one thread can read from memory.
Figure sum(const std::string& text) {
  std::vector<std::uint64_t> words(text.size() / 8);
  std::memcpy(words.data(), text.data(), words.size() * 8);
  const double start = thread_seconds();
  std::uint64_t total = 0;
  for (const std::uint64_t word : words) total += word;
  volatile std::uint64_t kept = total;
  (void)kept;
  return {.rows = 1, .seconds = thread_seconds() - start};
}

/// `cat FILES` through a pipe of `capacity` bytes, nothing done with the bytes.
Figure drain(const std::vector<std::string>& files, int capacity) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  ::fcntl(ends[0], F_SETPIPE_SZ, capacity);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::vector<std::string> words = {"cat", "-u"};
  words.insert(words.end(), files.begin(), files.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char> room(std::size_t{1} << 20);
  const double start = wall_seconds();
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, "cat", &actions, nullptr, arguments.data(), environ);
  ::close(ends[1]);
  while (failed == 0 && ::read(ends[0], room.data(), room.size()) > 0) {
  }
  if (failed == 0) ::waitpid(pid, nullptr, 0);
  ::close(ends[0]);
  ::posix_spawn_file_actions_destroy(&actions);
  return {.rows = 1, .seconds = wall_seconds() - start};
}

Figure read(const std::vector<Slot>& slots, const std::vector<std::string>& files, const std::string& command,
            std::size_t threads, const std::string& schema = "") {
  QueueDatasetOptions options;
  options.slots = slots;
  options.pipe.command = command;
  options.schema = schema;
  options.batch_size = kBatch;
  options.threads = threads;
  options.files = files;
  QueueDataset dataset(options);
  const double start = wall_seconds();
  dataset.start(false);
  std::vector<std::size_t> rows(dataset.readers());
  std::vector<std::thread> consumers;
  for (std::size_t reader = 0; reader < rows.size(); ++reader)
    consumers.emplace_back([&, reader] {
      Batch batch;
      while (dataset.next(reader, batch)) rows[reader] += batch.rows;
    });
  for (std::thread& consumer : consumers) consumer.join();
  return {.rows = std::accumulate(rows.begin(), rows.end(), std::size_t{0}),
          .seconds = wall_seconds() - start};
}

/// Runs and prints; `more` are further members of the JSON object.
template <class Run>
void report(const std::string& name, double bytes, Run run, const std::string& more = "") {
  static const double rate = counter_rate();
  std::vector<Figure> figures;
  for (int round = 0; round < kRounds; ++round) figures.push_back(run());
  std::sort(figures.begin(), figures.end(),
            [](const Figure& a, const Figure& b) { return a.seconds < b.seconds; });
  const Figure& median = figures[kRounds / 2];
  std::printf(
      "{\"name\": \"%s\", \"bytes_per_second\": %.0f, \"lowest\": %.0f, \"highest\": %.0f, "
      "\"rows_per_second\": %.0f, \"cycles_per_byte\": %.2f%s}\n",
      name.c_str(), bytes / median.seconds, bytes / figures.back().seconds, bytes / figures.front().seconds,
      static_cast<double>(median.rows) / median.seconds, median.seconds * rate / bytes, more.c_str());
  std::fflush(stdout);
}

void table(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  const auto bytes = static_cast<double>(text.size());
  const std::vector<Slot> slots = click_slots();
  report("memory, read by one thread", bytes, [&] { return sum(text); });
  report("parser, from memory, one thread's time", bytes, [&] { return parse(text); });
  report("a pipe of 64 KiB from cat, nothing parsed", bytes, [&] { return drain(files, 64 << 10); });
  report("a pipe of 1 MiB from cat, nothing parsed", bytes, [&] { return drain(files, 1 << 20); });
  report("QueueDataset through cat -u, one reader", bytes, [&] { return read(slots, files, "cat -u", 1); });
  report("QueueDataset, the file itself, one reader", bytes, [&] { return read(slots, files, "cat", 1); });
  report("QueueDataset, the file itself, two readers", bytes, [&] { return read(slots, files, "cat", 2); });
}

void reader(const std::string& schema, const std::vector<std::string>& files) {
  double bytes = 0;
  for (const std::string& file : files) bytes += static_cast<double>(std::filesystem::file_size(file));
  const std::vector<Slot> slots = slots_of(read_schema(schema));
  for (const std::size_t threads : {1, 2})
    report("raw text to batches by a schema, readers: " + std::to_string(threads), bytes,
           [&] { return read(slots, files, "cat", threads, schema); });
}

void scale(const std::string& folder) {
  constexpr std::size_t file_bytes = std::size_t{24} << 20, file_count = 4;
  for (const std::size_t slot_count : {5, 20, 80, 320, 1280}) {
    std::vector<Slot> slots;
    std::string line;
    for (std::size_t i = 0; i < slot_count; ++i) {
      slots.push_back({.name = "C" + std::to_string(i), .type = SlotType::int64});
      line += "1 " + std::to_string(10000 + i * 37 % 90000) + (i + 1 < slot_count ? " " : "\n");
    }
    std::vector<std::string> files;
    for (std::size_t i = 0; i < file_count; ++i) {
      files.push_back(folder + "/part-" + std::to_string(i));
      std::ofstream file(files.back(), std::ios::binary);
      for (std::size_t written = 0; written < file_bytes; written += line.size()) file << line;
    }
    const std::size_t lines = (file_bytes + line.size() - 1) / line.size();
    for (const std::size_t threads : {1, 2, 4})
      report(
          "scale", static_cast<double>(file_count * lines * line.size()),
          [&] { return read(slots, files, "cat", threads); },
          ", \"threads\": " + std::to_string(threads) + ", \"line_bytes\": " + std::to_string(line.size()));
    for (const std::string& file : files) ::unlink(file.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[0] == "table") {
    table({words.begin() + 1, words.end()});
  } else if (words.size() >= 3 && words[0] == "reader") {
    reader(words[1], {words.begin() + 2, words.end()});
  } else if (words.size() == 2 && words[0] == "scale") {
    scale(words[1]);
  } else {
    std::fprintf(stderr, "usage: dataset_bench table FILE… | reader SCHEMA FILE… | scale FOLDER\n");
    return 2;
  }
}
