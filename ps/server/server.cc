// Requests to tables and the barrier service. Who may ask: hello is open to all, everything else needs the
// incarnation that said hello, so that a restarted server cannot serve a trainer that believes in its old
// tables.
#include "ps/server/server.h"

#include <algorithm>
#include <utility>

#include "ps/server/server_state.h"

namespace fleetrun::ps {
namespace {

void check_options(const ServerOptions& options) {
  check_tables(options.tables);
  if (options.rank >= options.servers) {
    throw Error(ErrorKind::config, "server rank " + std::to_string(options.rank) + " among " +
                                       std::to_string(options.servers) + " servers");
  }
  if (options.trainers == 0) throw Error(ErrorKind::config, "a parameter server for 0 trainers");
  if (!options.standby.connect) return;
  if (options.durability.directory.empty())
    throw Error(ErrorKind::config, "a standby of a server that keeps nothing",
                "name a directory for its checkpoints");
  for (const TableConfig& table : options.tables)
    if (table.on_disk)
      throw Error(ErrorKind::config,
                  "table '" + table.name + "' has rows on disk, which a standby cannot follow",
                  "leave --ps_replicas out, or keep the table in memory");
}

}  // namespace

Server::Server(const ServerOptions& options, std::function<void()> all_done,
               std::function<void(const Error&, bool)> report) {
  check_options(options);
  state_ = std::make_unique<State>(options, std::move(all_done));
  if (!options.durability.directory.empty()) {
    state_->recover(std::move(report));
    state_->start_checkpoints();
    state_->start_following();
  }
  state_->start_expiry();
}

Server::~Server() {
  close();
  state_->end_following();
}

void Server::handle(const wire::Header& header, Reader body, Respond respond,
                    const MessageSource& answers) noexcept {
  const RequestGate::Pass pass(state_->gate, [&]() -> RequestGate::Parked {
    return [this, header, body, respond, answers](bool goes_on) {
      if (goes_on) return handle(header, body, respond, answers);
      respond(Error(ErrorKind::network, name_of(state_->options) + " has moved to another process"));
    };
  });
  if (!pass) return;
  const Span span(state_->tracks.of_this_thread(), wire::to_string(header.method), "request");
  Respond counted = Metrics::count(state_->metrics, header.method, body.remaining(), std::move(respond));
  state_->handle(header, std::move(body), std::move(counted), answers);
}

void Server::State::handle(const wire::Header& header, Reader body, Respond mine,
                           const MessageSource& answers) noexcept {
  // A request that was handed on to the barrier service or the write barrier leaves no respond behind,
  // so each is answered once.
  const std::string doing = std::string(wire::to_string(header.method)) + " on " + name_of(options);
  try {
    dispatch(header, body, mine, answers);
  } catch (Error& error) {
    error.while_doing(doing);
    if (mine) mine(std::move(error));
  } catch (const std::exception& error) {
    if (mine) mine(Error(ErrorKind::host, doing + " failed: " + error.what()));
  }
}

std::vector<std::uint32_t> Server::update(const MembershipUpdate& membership_update) {
  const RequestGate::Pass pass(state_->gate);
  if (!pass) return {};
  return state_->barrier_service.update(membership_update);
}

std::uint64_t Server::stale_requests() const noexcept {
  return state_->stale_requests;
}

bool Server::is_stale(const wire::Header& header) const noexcept {
  return state_->barrier_service.is_stale(header.trainer, header.generation);
}

bool Server::lost(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) noexcept {
  const RequestGate::Pass pass(state_->gate);
  if (!pass) return false;
  const bool went = state_->barrier_service.leave_for_now(trainer, incarnation, connection);
  // Told twice of the same end: give_up() is due already.
  if (state_->options.recover_within.count() > 0) return went;
  state_->give_up(trainer, incarnation, connection);
  return false;
}

void Server::give_up(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) noexcept {
  const RequestGate::Pass pass(state_->gate);
  if (pass) state_->give_up(trainer, incarnation, connection);
}

void Server::State::give_up(std::uint32_t trainer, std::uint64_t incarnation,
                            std::uint64_t connection) noexcept {
  try {
    if (!barrier_service.give_up(trainer, incarnation, connection)) return;
    write_barrier.end({trainer, incarnation});
    lost_saver(trainer);
    leave_bound(trainer);
  } catch (const std::exception&) {
    // The log is full: the next change will say so.
  }
}

void Server::abandon() noexcept {
  if (state_->durable && state_->durable->log) state_->durable->log->abandon();
  state_->end_following();
}

const std::optional<Recovery>& Server::recovery() const noexcept {
  return state_->recovery;
}

bool Server::is_done() const {
  return state_->barrier_service.are_all_done();
}

void Server::make_checkpoint() {
  state_->make_checkpoint();
}

void Server::close() noexcept {
  state_->barrier_service.close();
  state_->end_bound();
  state_->end_saves();
  state_->write_barrier.close();
}

void Server::State::dispatch(const wire::Header& header, Reader& body, Respond& respond,
                             const MessageSource& answers) {
  if (barrier_service.is_stale(header.trainer, header.generation)) ++stale_requests;
  if (header.trainer == wire::kObserver) check_observer(header.method);
  if (header.method == wire::Method::hello) {
    if (header.trainer == wire::kObserver) {
      Message reply = hello_observer(body);
      return std::exchange(respond, nullptr)(std::move(reply));
    }
    auto reply = std::make_shared<Message>(hello(header, body));
    // What it is told of must not be lost after it.
    return barrier_service.when_applied(header.trainer,
                                        [this, reply, answer = std::exchange(respond, nullptr)] {
                                          when_safe([reply, answer] { answer(std::move(*reply)); });
                                        });
  }
  // Its answer was lost, and it is said again.
  if (header.method == wire::Method::goodbye && barrier_service.is_done(header.trainer, header.incarnation))
    return std::exchange(respond, nullptr)(Message());
  if (header.trainer != wire::kObserver)
    barrier_service.require(header.trainer, header.incarnation, header.generation);
  if (dispatch_barrier(header, body, respond)) return;
  Message reply = answer(header, body, answers);
  std::exchange(respond, nullptr)(std::move(reply));
}

// The requests that may wait for other trainers or for the log; false for all others.
bool Server::State::dispatch_barrier(const wire::Header& header, Reader& body, Respond& respond) {
  const auto gather = [&](BarrierService::Kind kind, std::vector<double> values) {
    wire::expect_end(body);
    barrier_service.gather(kind, header.trainer, std::move(values), std::exchange(respond, nullptr),
                           header.sequence);
    return true;
  };
  switch (header.method) {
    case wire::Method::attend:
      barrier_service.attend(header.trainer, std::exchange(respond, nullptr));
      return true;
    case wire::Method::push:
    case wire::Method::assign:
    case wire::Method::set_dense:
    case wire::Method::shrink:
      if (header.method == wire::Method::shrink) shrink_expired(body, respond);
      change(header, body, respond);
      return true;
    case wire::Method::measure:
      measure(header, body, respond);
      return true;
    case wire::Method::keep_pace:
      keep_pace(header, body, respond);
      return true;
    case wire::Method::save_begin:
      begin_save(header, body, respond);
      return true;
    case wire::Method::save_end:
      end_save(header, body);
      when_safe([answer = std::exchange(respond, nullptr)] { answer(Message()); });
      return true;
    case wire::Method::barrier:
      return gather(BarrierService::Kind::barrier, {});
    case wire::Method::begin_epoch: {
      const auto epoch = body.value<wire::BeginEpoch>();
      if (epoch.threads > wire::kMaxThreads) {
        throw Error(ErrorKind::config, "begin_epoch with " + std::to_string(epoch.threads) +
                                           " threads; at most " + std::to_string(wire::kMaxThreads) + " fit");
      }
      if (options.mode == Mode::sync)
        return gather(BarrierService::Kind::begin_epoch, BarrierService::values_of(epoch));
      barrier_service.begin_counted({header.trainer, header.incarnation}, header.sequence, epoch);
      when_safe([answer = std::exchange(respond, nullptr)] { answer(Message()); });
      return true;
    }
    case wire::Method::leave_epoch:
      barrier_service.leave_epoch({header.trainer, header.thread}, header.sequence);
      when_safe([answer = std::exchange(respond, nullptr)] { answer(Message()); });
      return true;
    case wire::Method::all_reduce: {
      const auto count = body.value<std::uint64_t>();
      Message copy;
      const auto values = body.array<double>(count, copy);
      return gather(BarrierService::Kind::all_reduce, {values.begin(), values.end()});
    }
    default:
      return false;
  }
}

Message Server::State::answer(const wire::Header& header, Reader& body, const MessageSource& answers) {
  switch (header.method) {
    case wire::Method::pull: {
      const wire::PullRequest request = wire::read_pull(body);
      check_quota(request.sections, request.keys);
      note_pull(header, request);
      Message rows = current()->pull(request, answers);
      metrics->pulled(request.sections);
      return rows;
    }
    case wire::Method::stat:
      wire::expect_end(body);
      return stat();
    case wire::Method::take_staleness:
      wire::expect_end(body);
      return take_staleness(header);
    case wire::Method::who_waits:
      return who_waits(body);
    case wire::Method::pull_touched:
      return pull_touched(header, body);
    case wire::Method::get:
      return get(body);
    case wire::Method::goodbye:
      barrier_service.goodbye(header.trainer);
      write_barrier.end({header.trainer, header.incarnation});
      touched.forget(header.trainer);
      leave_bound(header.trainer);
      return {};
    case wire::Method::follow:
      return follow(body);
    case wire::Method::hand_back:
      return hand_back(body);
    case wire::Method::rows:
      return message_of(current()->sparse(body.value<std::uint32_t>()).rows());
    case wire::Method::save_freeze:
      return freeze_save();
    case wire::Method::save_settle:
      settle_save(body);
      return {};
    case wire::Method::save_text:
      save_text(header, body);
      return {};
    case wire::Method::save_part:
      return save_part(header, body);
    case wire::Method::save_commit:
      commit_save(body);
      return {};
    case wire::Method::load_prepare:
      return prepare_load(header, body);
    case wire::Method::load_commit:
      commit_load(header.trainer);
      return {};
    case wire::Method::load_abort: {
      const std::lock_guard lock(mutex);
      loaded.erase(header.trainer);
      return {};
    }
    default:
      throw Error(ErrorKind::config, "nobody answers a " + std::string(wire::to_string(header.method)));
  }
}

void Server::State::compare(const std::string& what, const std::string& here,
                            const std::string& there) const {
  if (here == there) return;
  throw Error(ErrorKind::config,
              name_of(options) + " and the trainer disagree on " + what + ": the server has " + here +
                  ", the trainer has " + there,
              "start servers and trainers with the same program and the same job");
}

Message Server::State::hello(const wire::Header& header, Reader& body) {
  const auto mode = body.value<std::uint32_t>();
  compare("the mode", std::string(to_string(options.mode)),
          mode <= static_cast<std::uint32_t>(Mode::geo) ? std::string(to_string(static_cast<Mode>(mode)))
                                                        : "an unknown one");
  const auto trainers = body.value<std::uint32_t>();
  // A trainer of a later world counts those of that world.
  if (!barrier_service.is_in_place() || header.generation == options.generation)
    compare("the number of trainers", std::to_string(options.trainers), std::to_string(trainers));
  compare("the number of servers", std::to_string(options.servers),
          std::to_string(body.value<std::uint32_t>()));
  compare("the server's rank", std::to_string(options.rank), std::to_string(body.value<std::uint32_t>()));
  const auto arrival = body.value<std::uint32_t>();
  const auto tables_there = body.value<std::uint32_t>();
  std::vector<std::string> there;
  for (std::uint32_t i = 0; i < tables_there; ++i) there.push_back(wire::read_text(body));
  const std::string launcher = wire::read_text(body);
  wire::expect_end(body);
  for (std::size_t i = 0; i < std::max(there.size(), options.tables.size()); ++i) {
    compare("the tables", i < options.tables.size() ? describe(options.tables[i]) : "no such table",
            i < there.size() ? there[i] : "no such table");
  }
  wire::Greeting answer;
  const Newcomer newcomer{header.trainer, header.incarnation, header.generation,
                          launcher,       header.sequence,    arrival};
  // After a goodbye, servers that are started again with what they kept are those of another job.
  const bool is_forgotten =
      barrier_service.is_forgotten(newcomer, !recovery) && write_barrier.has_changes(header.trainer);
  answer.late = barrier_service.hello(newcomer) ? 1 : 0;
  answer.finds = (is_forgotten ? wire::kForgotten : 0) |
                 (barrier_service.is_cut(header.trainer) ? wire::kCut : 0) | origin;
  answer.server = number;
  answer.next_change = write_barrier.begin({header.trainer, header.incarnation});
  answer.rounds = barrier_service.rounds(header.trainer);
  answer.started_from = started_from;
  answer.steps = barrier_service.steps(header.trainer);
  answer.epochs = barrier_service.marks(header.trainer);
  return wire::greet(answer);
}

}  // namespace fleetrun::ps
