// One thread per reader: take the next file, feed its bytes to the parser, queue each full batch. A batch
// goes on from one file of a reader to its next. The first error stops all readers; what they had queued is
// dropped.
#include "dataset/queue/queue_dataset.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "dataset/base/batch_queue.h"
#include "dataset/base/fingerprint.h"
#include "dataset/base/first_error.h"
#include "dataset/pipes/byte_source.h"
#include "dataset/pipes/pipes_ahead.h"
#include "dataset/schema/schema.h"
#include "dataset/schema/schema_parser.h"
#include "dataset/text/failed_line.h"
#include "dataset/text/multi_slot_parser.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/quiet_thread.h"
#include "runtime/base/unique_fd.h"
#include "runtime/log/log.h"

namespace fleetrun::dataset {
namespace {

void check_options(const QueueDatasetOptions& options) {
  if (options.slots.empty())
    throw Error(ErrorKind::config, "a dataset without slots", "give the input variables as use_var");
  for (const Slot& slot : options.slots) {
    if (slot.name.empty()) throw Error(ErrorKind::config, "a slot without a name");
    if (slot.width < 1)
      throw Error(ErrorKind::config,
                  "slot '" + slot.name + "' has a width of " + std::to_string(slot.width) + ", less than 1");
  }
  if (std::none_of(options.slots.begin(), options.slots.end(), [](const Slot& slot) { return slot.used; }))
    throw Error(ErrorKind::config, "a dataset without a slot that is used", "use at least one of its slots");
  if (!options.schema.empty() && options.prefixes.any())
    throw Error(
        ErrorKind::config,
        "delimited text, which a schema describes, has no ids, contents or log keys before its slots");
  if (options.batch_size < 1) throw Error(ErrorKind::config, "a batch size of 0, less than 1");
  if (options.threads < 1) throw Error(ErrorKind::config, "a thread count of 0, less than 1");
  if (options.queue_batches < 1) throw Error(ErrorKind::config, "a queue of 0 batches, less than 1");
}

struct Reader {
  Reader(std::size_t queue_batches, std::size_t its_number) : queue(queue_batches), number(its_number) {}
  BatchQueue queue;
  const std::size_t number;
  std::thread thread;
  Track* track = nullptr;             // of its thread, while it runs
  std::atomic<bool> drained = false;  // its consumer has had all
};

}  // namespace

/// An epoch over the files, and what its readers share.
struct QueueDataset::State {
  explicit State(QueueDatasetOptions wanted) : options(std::move(wanted)), bad_lines(options.bad_lines) {
    std::copy_if(options.slots.begin(), options.slots.end(), std::back_inserter(used_slots),
                 [](const Slot& slot) { return slot.used; });
    if (!options.schema.empty()) schema = schema_for(read_schema(options.schema), used_slots, options.schema);
  }

  void begin(bool in_turn);
  void end() noexcept;
  bool is_complete() const noexcept;
  void read_environment();
  void prepare_stop_event();
  ByteSourceOptions source_options(std::size_t index) const;
  void start_ahead();
  void run(Reader& reader) noexcept;
  void read_files(Reader& reader);
  static void push(Reader& reader, Batch& batch);
  std::size_t file_after(const Reader& reader, std::size_t taken);
  template <class Parser>
  void read_files_with(Parser&& parser, Reader& reader);
  template <class Parser>
  void read_file(std::size_t index, Reader& reader, Parser& parser, Batch& batch);
  void report_bad_lines() const;
  void fail(std::exception_ptr cause) noexcept;

  const QueueDatasetOptions options;
  std::vector<Slot> used_slots;
  std::optional<Schema> schema;  // of the used slots
  std::vector<std::unique_ptr<Reader>> readers;
  std::vector<std::string> environment;  // read once: a reader's thread must not race with a setenv()
  std::atomic<std::size_t> next_file = 0;
  bool in_turn = false;
  UniqueFd stop_event;
  std::mutex owner_mutex;  // start() and stop(), which may come from several threads
  FirstError first_error;
  BadLines bad_lines;
  std::atomic<std::size_t> running = 0;
  std::atomic<std::size_t> next_ahead = 0;
  PipesAhead ahead;  // the first files of the next epoch
  std::shared_ptr<Timeline> timeline;
};

void QueueDataset::State::read_environment() {
  std::vector<std::string> now;
  const Environ own = Environ::of_process();
  for (const auto& [name, value] : own.values()) now.emplace_back(name).append("=").append(value);
  if (now != environment) ahead.clear();
  environment = std::move(now);
}

/// The same event in every epoch: what was started ahead waits for it.
void QueueDataset::State::prepare_stop_event() {
  if (!stop_event)
    stop_event.reset(
        check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "cannot start the readers"));
  std::uint64_t ignored = 0;
  [[maybe_unused]] const auto taken = ::read(stop_event.value(), &ignored, sizeof ignored);
}

void QueueDataset::State::begin(bool files_in_turn) {
  if (options.files.empty() && !options.allows_no_files)
    throw Error(ErrorKind::config, "a dataset without files", "call set_filelist() with the data files");
  check_files(options.files);
  read_environment();
  prepare_stop_event();
  next_file = 0;
  next_ahead = 0;
  in_turn = files_in_turn;
  first_error.clear();
  bad_lines.clear();
  readers.clear();
  const std::size_t most = std::max<std::size_t>(options.files.size(), 1);
  for (std::size_t i = 0; i < std::min(options.threads, most); ++i)
    readers.push_back(std::make_unique<Reader>(options.queue_batches, i));
  running = readers.size();
  try {
    for (const auto& reader : readers)
      reader->thread = quiet_thread([this, target = reader.get()] { run(*target); });
  } catch (...) {
    end();
    throw;
  }
}

void QueueDataset::State::end() noexcept {
  const std::uint64_t one = 1;
  if (stop_event) [[maybe_unused]]
    const auto written = ::write(stop_event.value(), &one, sizeof one);
  for (const auto& reader : readers) reader->queue.abandon();
  for (const auto& reader : readers)
    if (reader->thread.joinable()) reader->thread.join();
}

bool QueueDataset::State::is_complete() const noexcept {
  return std::all_of(readers.begin(), readers.end(),
                     [](const auto& reader) { return reader->drained.load(); });
}

void QueueDataset::State::run(Reader& reader) noexcept {
  try {
    Track track(timeline, "reader " + std::to_string(reader.number));
    reader.track = &track;
    read_files(reader);
    if (--running == 0) report_bad_lines();
    reader.queue.finish();
  } catch (const StopRequested&) {
    reader.queue.abandon();
  } catch (...) {
    fail(std::current_exception());
  }
}

// The file that a reader reads when it has read `taken`.
std::size_t QueueDataset::State::file_after(const Reader& reader, std::size_t taken) {
  return in_turn ? reader.number + taken * readers.size() : next_file++;
}

void QueueDataset::State::read_files(Reader& reader) {
  if (schema)
    read_files_with(SchemaParser(*schema, used_slots), reader);
  else
    read_files_with(MultiSlotParser(options.slots, {.prefixes = options.prefixes}), reader);
}

template <class Parser>
void QueueDataset::State::read_files_with(Parser&& parser, Reader& reader) {
  Batch batch;
  parser.begin_batch(batch, options.batch_size);
  std::size_t taken = 0;
  for (std::size_t index = file_after(reader, 0); index < options.files.size();
       index = file_after(reader, ++taken))
    read_file(index, reader, parser, batch);
  if (options.starts_next_epoch && !options.files.empty()) start_ahead();
  const std::size_t rows = parser.end_batch();
  if (rows == 0 || (options.drop_last && rows < options.batch_size)) return;
  push(reader, batch);
}

void QueueDataset::State::push(Reader& reader, Batch& batch) {
  reader.track->flush();
  const Span span(reader.track, "wait", "reader");
  if (!reader.queue.push(batch)) throw StopRequested();
}

void QueueDataset::State::report_bad_lines() const {
  const BadLineReport report = bad_lines.report();
  if (report.count > 0) log::warning(to_string(report));
}

ByteSourceOptions QueueDataset::State::source_options(std::size_t index) const {
  return {.file = options.files[index],
          .pipe = options.pipe,
          .environment = environment,
          .stop_fd = stop_event.value()};
}

/// By each reader when it has no more files: an epoch begins with as many files as there are readers.
void QueueDataset::State::start_ahead() {
  const std::size_t index = next_ahead++;
  ahead.start(index, source_options(index));
}

template <class Parser>
MultiSlotParser::Outcome parse(Parser& parser, Reader& reader) {
  const Span span(reader.track, "parse", "reader");
  return parser.parse();
}

template <class Parser>
std::size_t read(ByteSource& source, Parser& parser, Reader& reader) {
  const Span span(reader.track, "read", "reader");
  return source.read(parser.room());
}

template <class Parser>
void QueueDataset::State::read_file(std::size_t index, Reader& reader, Parser& parser, Batch& batch) {
  const std::string& file = options.files[index];
  std::unique_ptr<ByteSource> source = ahead.take(index, file);
  if (!source) source = open_byte_source(source_options(index));
  parser.begin_input();
  for (bool ended = false;;) {
    switch (parse(parser, reader)) {
      case MultiSlotParser::Outcome::full:
        parser.end_batch();
        push(reader, batch);
        parser.begin_batch(batch, options.batch_size);
        continue;
      case MultiSlotParser::Outcome::bad:
        try {
          bad_lines.add(file, command_text(options.pipe), parser.fault());
        } catch (const Error& error) {
          if constexpr (requires { parser.bad_line(); })
            keep_failed_line(
                {options.slots, options.prefixes, parser.fault(), std::string(parser.bad_line())},
                error.what());
          throw;
        }
        parser.skip_bad_line();
        continue;
      case MultiSlotParser::Outcome::more:
        break;
    }
    if (ended) return;
    const std::size_t bytes = read(*source, parser, reader);
    parser.commit(bytes);
    ended = bytes == 0;
    if (ended) parser.end_input();
  }
}

void QueueDataset::State::fail(std::exception_ptr cause) noexcept {
  first_error.put(std::move(cause));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_event.value(), &one, sizeof one);
  for (const auto& other : readers) other->queue.abandon();
}

QueueDataset::QueueDataset(QueueDatasetOptions options) {
  check_options(options);
  state_ = std::make_unique<State>(std::move(options));
}

QueueDataset::~QueueDataset() {
  stop();
}

const QueueDatasetOptions& QueueDataset::options() const noexcept {
  return state_->options;
}

const std::vector<Slot>& QueueDataset::slots() const noexcept {
  return state_->used_slots;
}

void QueueDataset::start(bool in_turn) {
  const std::lock_guard lock(state_->owner_mutex);
  state_->end();
  state_->begin(in_turn);
}

std::size_t QueueDataset::readers() const noexcept {
  return state_->readers.size();
}

std::uint64_t QueueDataset::fingerprint() const {
  const QueueDatasetOptions& options = state_->options;
  return Fingerprint()
      .add(options.files)
      .add_batches(options.batch_size, readers(), options.drop_last)
      .value();
}

bool QueueDataset::next(std::size_t reader, Batch& batch) {
  Reader& from = *state_->readers.at(reader);
  if (from.queue.take(batch)) return true;
  state_->first_error.rethrow();
  from.drained = true;
  return false;
}

void QueueDataset::stop() noexcept {
  const std::lock_guard lock(state_->owner_mutex);
  state_->end();
  if (!state_->is_complete()) state_->ahead.clear();
}

void QueueDataset::draw_on(std::shared_ptr<Timeline> timeline) {
  state_->timeline = std::move(timeline);
}

BadLineReport QueueDataset::bad_lines() const {
  return state_->bad_lines.report();
}

}  // namespace fleetrun::dataset
