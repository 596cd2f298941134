// Asking all servers at once, and meeting the other trainers. Barriers and sums are server 0's.
#include "ps/client/channel_client.h"

#include <algorithm>

#include "ps/base/background_queue.h"
#include "ps/client/channel_client_state.h"
#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/recovery_words.h"

namespace fleetrun::ps {

using wire::Header;
using wire::Method;

// So long the server may take to say who waits.
static constexpr std::chrono::seconds kWhoWaits{5};

// What a client goes on from whose script begins anew; one with an identity knows by itself.
static FastForward::Done done_of(const ClientOptions& options, const Welcome& welcome) {
  if ((options.mode != Mode::sync && !options.counts_epochs) || options.identity != 0 ||
      welcome.last_epochs.empty())
    return {};
  return {welcome.barriers, welcome.sums, welcome.epochs, welcome.last_epochs, welcome.marks, welcome.is_cut};
}

ChannelClient::ChannelClient(const ClientOptions& options, std::uint64_t incarnation,
                             std::vector<std::unique_ptr<Channel>> channels, const Welcome& welcome)
    : options_(options),
      incarnation_(incarnation),
      channels_(std::move(channels)),
      is_late_(welcome.is_late),
      generation_(options.generation),
      changes_(welcome.next_change),
      before_(done_of(options, welcome)) {
  if (options.identity != 0) {
    barriers_.done = welcome.barriers;
    sums_.done = welcome.sums;
    epochs_.done = welcome.epochs;
  }
  for (const TableConfig& config : options_.tables) tables_.emplace(config.id, config);
}

void ChannelClient::ask_all(Header head, const std::function<Message(std::uint32_t)>& make,
                            PendingCalls::Join join) {
  // An epoch begins when the other trainers do.
  const bool waits = head.method == Method::begin_epoch;
  const Deadlines& limits = options_.deadlines;
  PendingCalls pending(waits                  ? std::chrono::milliseconds()
                       : is_slow(head.method) ? limits.saving
                                              : limits.data);
  pending.on_answer(std::move(join));
  if (waits) watch(pending);
  for (std::uint32_t s = 0; s < servers(); ++s) pending.start(*channels_[s], s, head, make(s));
  pending.wait();
}

void ChannelClient::watch(PendingCalls& pending) {
  if (!options_.warn || options_.tell_waits.count() == 0) return;
  pending.on_long_wait(std::max(options_.tell_waits / 4, std::chrono::milliseconds(1)),
                       [this] { return tell_waits(); });
}

// The server that barriers and sums go to knows who waits. True when there is nothing more to tell.
bool ChannelClient::tell_waits() {
  if (has_told_waits_) return true;
  std::string text;
  try {
    const Header head = header(Method::who_waits);
    PendingCalls pending(kWhoWaits);
    pending.on_answer([&](std::uint32_t, Reader answer) { text = wire::read_text(answer); });
    wire::Draft draft = wire::draft(head, sizeof(std::uint64_t));
    draft.writer.value(static_cast<std::uint64_t>(options_.tell_waits.count()));
    pending.start(*channels_[0], 0, head, std::move(draft.message));
    pending.wait();
  } catch (const Error&) {
    return false;  // the call itself says what is wrong with the server
  }
  if (text.empty()) return false;
  if (has_told_waits_.exchange(true)) return true;
  if (options_.mode == Mode::sync && !before_.is_idle())
    throw Error(ErrorKind::config,
                "trainer " + std::to_string(options_.trainer) + std::string(kCannotGoOnAlone) +
                    "it was started again, and now no trainer goes on: " + text,
                "a script that is started again begins with the pass that was under way, or an earlier one; "
                "passes over the same data are counted from the first");
  options_.warn("no trainer goes on: " + text + "; all trainers must make these calls in the same order");
  return true;
}

void ChannelClient::meet(Rounds& rounds, const std::function<void(std::uint64_t)>& ask) {
  const std::lock_guard lock(rounds.mutex);
  ask(rounds.done + 1);
  ++rounds.done;
}

bool ChannelClient::counts_epochs() const noexcept {
  return options_.mode != Mode::sync && options_.counts_epochs && options_.identity == 0;
}

void ChannelClient::begin_epoch(const EpochStart& epoch) {
  const std::lock_guard lock(epochs_.mutex);
  is_counted_ = counts_epochs() && epoch.data != 0;
  if (options_.mode != Mode::sync && !is_counted_) return;
  const FastForward::Begun begun = before_.begin_epoch(epochs_.done + 1, epoch.threads, epoch.data);
  has_left_epoch_ = begun.leaves_cut;
  barriers_.raise(begun.barriers);
  sums_.raise(begun.sums);
  if (begun.leaves_cut && options_.mode == Mode::sync) {
    throw Error(ErrorKind::config,
                "trainer " + std::to_string(options_.trainer) + std::string(kCannotGoOnAlone) +
                    "it was started again in the middle of a pass, and begins one over other data or "
                    "batches, while the other trainers wait for it in that pass",
                "in sync mode a script that is started again begins with the pass that was under way, or an "
                "earlier one");
  }
  if (!begun.is_known) {
    Header head = header(Method::begin_epoch);
    head.sequence = begun.number;
    ask_all(head, [&](std::uint32_t) {
      wire::Draft draft = wire::draft(head, sizeof(wire::BeginEpoch));
      draft.writer.value(wire::BeginEpoch{epoch.threads, 0, {epoch.data, barriers_.now(), sums_.now()}});
      return std::move(draft.message);
    });
  }
  epochs_.done = begun.number;
}

void ChannelClient::leave_epoch(std::uint32_t thread) {
  Header head = header(Method::leave_epoch, thread);
  {
    const std::lock_guard lock(epochs_.mutex);
    if (options_.mode != Mode::sync && !is_counted_) return;
    head.sequence = epochs_.done;
  }
  ask_all(head);
}

void ChannelClient::barrier() {
  meet(barriers_, [&](std::uint64_t number) {
    if (before_.barrier(number)) return;
    Header head = header(Method::barrier);
    head.sequence = number;
    PendingCalls pending;
    watch(pending);
    pending.start(*channels_[0], 0, head, wire::draft(head, 0).message);
    pending.wait();
  });
}

void ChannelClient::all_reduce_sum(std::span<double> values) {
  meet(sums_, [&](std::uint64_t number) {
    // One that was complete is asked for as well: its result is kept there.
    before_.sum(number);
    Header head = header(Method::all_reduce);
    head.sequence = number;
    wire::Draft draft = wire::draft(head, sizeof(std::uint64_t) + values.size_bytes());
    draft.writer.value(std::uint64_t{values.size()});
    draft.writer.array(std::span<const double>(values));
    PendingCalls pending;
    watch(pending);
    pending.on_answer([values](std::uint32_t, Reader answer) {
      answer.read(values.data(), values.size_bytes());
      wire::expect_end(answer);
    });
    pending.start(*channels_[0], 0, head, std::move(draft.message));
    pending.wait();
  });
}

void ChannelClient::goodbye() {
  if (said_goodbye_.exchange(true)) return;
  ask_all(header(Method::goodbye));
}

std::uint64_t make_incarnation() {
  return random_number<std::uint64_t>();
}

Message make_hello(const ClientOptions& client, std::uint64_t incarnation, std::uint32_t rank,
                   std::uint32_t servers, std::uint64_t connection) {
  std::vector<std::string> tables;
  std::size_t size = 6 * sizeof(std::uint32_t) + wire::text_size(client.launcher);
  for (const TableConfig& config : client.tables) {
    tables.push_back(describe(config));
    size += wire::text_size(tables.back());
  }
  wire::Draft draft =
      wire::draft({wire::Method::hello, client.trainer, 0, incarnation, client.generation, connection}, size);
  draft.writer.value(static_cast<std::uint32_t>(client.mode));
  draft.writer.value(client.trainers);
  draft.writer.value(servers);
  draft.writer.value(rank);
  draft.writer.value((client.begins_anew ? wire::kBeginsAnew : 0) |
                     (client.counts_epochs ? wire::kCountsEpochs : 0));
  draft.writer.value(static_cast<std::uint32_t>(tables.size()));
  for (const std::string& text : tables) wire::write_text(draft.writer, text);
  wire::write_text(draft.writer, client.launcher);
  return std::move(draft.message);
}

void Welcome::add(std::uint32_t rank, const wire::Greeting& answer) {
  // One that has gone on from a checkpoint of its own since then, or from nothing, says 0.
  if (started_from != 0 && answer.started_from != 0 && answer.started_from != started_from) {
    throw Error(
        ErrorKind::data,
        "server " + std::to_string(rank) + " was started from another save than the servers before it",
        "the newest save is damaged on one of their hosts, or not there: copy one save to all of them");
  }
  if (started_from == 0) started_from = answer.started_from;
  if (answer.finds & wire::kResumed) resumed = rank;
  if (answer.finds & wire::kBeganEmpty) empty = rank;
  if (resumed && empty) {
    throw Error(ErrorKind::data,
                "server " + std::to_string(*empty) + " begins with empty tables, and server " +
                    std::to_string(*resumed) + " goes on from the checkpoint of an earlier run",
                "bring back the checkpoint directory of server " + std::to_string(*empty) +
                    ", or begin anew with --ps_checkpoint_found=replace");
  }
  is_late = is_late || answer.late != 0;
  is_forgotten = is_forgotten || (answer.finds & wire::kForgotten) != 0;
  is_cut = is_cut || (answer.finds & wire::kCut) != 0;
  servers.resize(std::max<std::size_t>(servers.size(), rank + 1));
  servers[rank] = answer.server;
  next_change = std::min(next_change, answer.next_change);
  // Barriers and sums are server 0's.
  if (rank == 0) barriers = answer.rounds[0];
  if (rank == 0) sums = answer.rounds[1];
  epochs = std::min(epochs, answer.rounds[2]);
  last_epochs.resize(servers.size());
  last_epochs[rank] = {answer.rounds[2], answer.steps};
  if (answer.epochs.size() > marks.size()) marks = answer.epochs;
}

void check_has(const Welcome& welcome, std::uint64_t answered, const std::string& name) {
  if (welcome.next_change > answered) return;
  throw Error(ErrorKind::data,
              name + " has come back without change " + std::to_string(welcome.next_change) +
                  ", which it had answered",
              "start the job again; --ps_checkpoint DIR keeps it");
}

std::unique_ptr<Client> make_channel_client(const ClientOptions& options, std::uint64_t incarnation,
                                            std::vector<std::unique_ptr<Channel>> channels,
                                            const Welcome& welcome) {
  return std::make_unique<ChannelClient>(options, incarnation, std::move(channels), welcome);
}

std::uint64_t ChangeNumbers::next() const noexcept {
  const std::lock_guard lock(mutex_);
  return next_;
}

std::uint64_t ChangeNumbers::take() {
  const std::lock_guard lock(mutex_);
  if (!in_flight_.empty() && next_ - *in_flight_.begin() >= kMaxInFlight) {
    throw Error(ErrorKind::config,
                "change " + std::to_string(*in_flight_.begin()) + " has not been waited for, and " +
                    std::to_string(kMaxInFlight) + " have followed it",
                "wait for what push_async returns");
  }
  in_flight_.insert(next_);
  return next_++;
}

void ChangeNumbers::end(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(number);
}

}  // namespace fleetrun::ps
