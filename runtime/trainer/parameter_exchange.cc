// Buffers: a pull fills its own buffers, and two exist at most (the step that computes, the step that
// follows), so the two sets change places. Dense values and gradients are not copied: their tensors are
// swapped between executor and buffers.

#include "runtime/trainer/parameter_exchange.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/passes/passes.h"
#include "runtime/trainer/dense_exchange.h"
#include "runtime/trainer/exchange_queue.h"

namespace fleetrun::runtime {

namespace {

using engine::Operator;
using engine::Tensor;

/// One use of a sparse table: whose ids, and the id that is not a key.
struct Lookup {
  std::string ids;
  std::int64_t padding = -1;
};

struct SparseTable {
  const TablePlan::Entry* entry;
  std::vector<Lookup> lookups;
  /// All ids are fed, so that keys are known before the step runs.
  bool known_ahead = true;
};

struct DenseTable {
  const TablePlan::Entry* entry;
  engine::Shape shape;
};

/// The rows of one step, and its dense values where these travel with them.
struct Pulled {
  struct Rows {
    std::vector<std::uint64_t> keys;
    std::vector<float> values;
    /// Keys that lookups have taken so far.
    std::size_t taken = 0;
  };
  std::vector<Rows> rows;
  std::vector<Tensor> dense;
  bool has_dense = false;
  std::unique_ptr<ps::Pending> pending;
};

/// The gradients of one step, until their push is done.
struct Flight {
  std::vector<Tensor> gradients;
  std::vector<Tensor> keys;
  std::vector<Tensor> shows;
  std::vector<Tensor> clicks;
  std::unique_ptr<ps::Pending> pending;
};

/// The fed variable that holds the same ids in the same order; empty when there is none.
std::string fed_ids(const engine::Program& program, std::string name) {
  const auto& operators = program.operators();
  for (std::size_t i = operators.size(); i-- > 0 && !program.variable(name).is_data;) {
    const Operator& op = operators[i];
    if (op.outputs.size() != 1 || op.outputs[0] != name) continue;
    const bool same = op.type == "reshape" || op.type == "squeeze" || op.type == "unsqueeze" ||
                      op.type == "flatten" || op.type == "assign" || op.type == "cast";
    if (!same || op.inputs.size() != 1 || program.variable(op.inputs[0]).type != engine::DataType::int64) {
      return {};
    }
    name = op.inputs[0];
  }
  return program.variable(name).is_data ? name : std::string();
}

std::span<const std::uint64_t> as_keys(const Tensor& ids) {
  const auto values = ids.values<std::int64_t>();
  return {reinterpret_cast<const std::uint64_t*>(values.data()), values.size()};
}

}  // namespace

struct ParameterExchange::State {
  const TablePlan& plan;
  ps::StepClient* client;
  ExchangeOptions options;
  engine::Executor* executor = nullptr;
  std::vector<SparseTable> sparse;
  std::vector<DenseTable> dense;
  bool has_gradients = false;
  bool has_dense_values = false;
  std::uint64_t dense_steps = 0;
  /// The step that computes, and those begun but not finished.
  Pulled current;
  std::deque<Pulled> coming;
  std::vector<Pulled> spare;
  std::deque<Flight> flights;
  std::vector<Flight> spare_flights;
  /// Only when it runs ahead.
  std::optional<DenseExchange> dense_ahead;
  /// Only when it runs ahead. Last: it ends before the buffers that it fills.
  std::optional<ExchangeQueue> queue;

  State(const engine::Program& program, const TablePlan& in_plan, ps::StepClient* in_client,
        const ExchangeOptions& in_options);
  void collect_keys(const SparseTable& table, const Feed& feed, Pulled::Rows& rows) const;
  SparseTable& table_of(const std::string& parameter);
  void wait_for(std::unique_ptr<ps::Pending>& pending) const;
  void ask_for_dense(Pulled& pulled, ps::Pull& request);
};

ParameterExchange::State::State(const engine::Program& program, const TablePlan& in_plan,
                                ps::StepClient* in_client, const ExchangeOptions& in_options)
    : plan(in_plan), client(in_client), options(in_options) {
  if (client == nullptr && !plan.entries.empty()) {
    throw Error(ErrorKind::config,
                "parameter '" + plan.entries.front().parameter + "' is in a table, and there is no server",
                "call fleet.init_worker() first");
  }
  if (options.runs_ahead && client != nullptr) {
    const auto timeline = options.track == nullptr ? nullptr : options.track->timeline();
    queue.emplace(*client, Track(timeline, "exchange " + std::to_string(options.thread)));
    dense_ahead.emplace(program, plan, *queue,
                        DenseOptions{.thread = options.thread,
                                     .train = options.train,
                                     .pull_every = options.pull_dense_every,
                                     .pushes = !client->counts_epochs()});
  }
  for (const TablePlan::Entry& entry : plan.entries) {
    if (options.train && !entry.gradient.empty()) {
      has_gradients = has_gradients || program.has_variable(entry.gradient);
    }
    if (entry.table.kind == ps::TableConfig::Kind::dense) {
      if (!options.rows_only) dense.push_back({&entry, program.variable(entry.parameter).shape});
      continue;
    }
    SparseTable table{&entry, {}, true};
    for (const Operator& op : program.operators()) {
      for (const engine::OutsideLookup& lookup : engine::outside_lookups(op)) {
        if (lookup.parameter != entry.parameter) continue;
        table.lookups.push_back({fed_ids(program, lookup.ids), lookup.padding});
        table.known_ahead = table.known_ahead && !table.lookups.back().ids.empty();
      }
    }
    sparse.push_back(std::move(table));
  }
  has_gradients = has_gradients && engine::has_backward(program);
}

void ParameterExchange::State::collect_keys(const SparseTable& table, const Feed& feed,
                                            Pulled::Rows& rows) const {
  rows.keys.clear();
  rows.taken = 0;
  if (!table.known_ahead) return;
  for (const Lookup& lookup : table.lookups) {
    const auto found = feed.find(lookup.ids);
    if (found == feed.end() || found->second == nullptr) {
      throw Error(ErrorKind::config, "'" + lookup.ids + "' is not fed",
                  "feed every data variable that the program reads");
    }
    const auto keys = as_keys(*found->second);
    if (lookup.padding < 0) {
      rows.keys.insert(rows.keys.end(), keys.begin(), keys.end());
    } else {
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(rows.keys), [&lookup](std::uint64_t key) {
        return key != static_cast<std::uint64_t>(lookup.padding);
      });
    }
  }
  rows.values.resize(rows.keys.size() * ps::pulled_width(table.entry->table));
}

SparseTable& ParameterExchange::State::table_of(const std::string& parameter) {
  for (SparseTable& table : sparse) {
    if (table.entry->parameter == parameter) return table;
  }
  throw Error(ErrorKind::config, "sparse parameter '" + parameter + "' has no table",
              "minimize the loss with the optimizer that fleet.distributed_optimizer returned");
}

void ParameterExchange::State::wait_for(std::unique_ptr<ps::Pending>& pending) const {
  if (!pending) return;
  const Span span(options.track, "wait", "wait");
  pending->wait();
  pending.reset();
}

void ParameterExchange::State::ask_for_dense(Pulled& pulled, ps::Pull& request) {
  const bool due = options.train && dense_steps++ % options.pull_dense_every == 0;
  pulled.has_dense = !queue && (due || !std::exchange(has_dense_values, true));
  if (!pulled.has_dense) return;
  pulled.dense.resize(dense.size());
  for (std::size_t i = 0; i < dense.size(); ++i) {
    pulled.dense[i].resize(engine::DataType::float32, dense[i].shape);
    request.dense.push_back({dense[i].entry->table.id, pulled.dense[i].values<float>()});
  }
}

ParameterExchange::ParameterExchange(const engine::Program& program, const TablePlan& plan,
                                     ps::StepClient* client, const ExchangeOptions& options)
    : state_(std::make_unique<State>(program, plan, client, options)) {}

ParameterExchange::~ParameterExchange() = default;

std::set<std::string> ParameterExchange::dense_parameters() const {
  std::set<std::string> names;
  for (const DenseTable& table : state_->dense) names.insert(table.entry->parameter);
  return names;
}

void ParameterExchange::attach(engine::Executor& executor) {
  state_->executor = &executor;
}

void ParameterExchange::begin_pull(const Feed& feed) {
  Pulled pulled;
  if (!state_->spare.empty()) {
    pulled = std::move(state_->spare.back());
    state_->spare.pop_back();
  }
  pulled.rows.resize(state_->sparse.size());
  ps::Pull request;
  request.create = state_->has_gradients;
  if (request.create) request.thread = state_->options.thread;
  for (std::size_t i = 0; i < state_->sparse.size(); ++i) {
    Pulled::Rows& rows = pulled.rows[i];
    state_->collect_keys(state_->sparse[i], feed, rows);
    if (!rows.keys.empty()) {
      request.sparse.push_back({state_->sparse[i].entry->table.id, rows.keys, rows.values});
    }
  }
  if (state_->dense_ahead && !std::exchange(state_->has_dense_values, true)) state_->dense_ahead->begin();
  state_->ask_for_dense(pulled, request);
  if (!request.sparse.empty() || !request.dense.empty()) {
    pulled.pending = state_->queue ? state_->queue->pull_async(request) : state_->client->pull_async(request);
  }
  state_->coming.push_back(std::move(pulled));
}

void ParameterExchange::finish_pull() {
  Pulled& next = state_->coming.front();
  state_->wait_for(next.pending);
  state_->spare.push_back(std::exchange(state_->current, std::move(next)));
  state_->coming.pop_front();
  if (state_->dense_ahead) {
    const Span span(state_->options.track, "wait", "wait");
    state_->dense_ahead->finish(*state_->executor);
  }
  if (!state_->current.has_dense) return;
  for (std::size_t i = 0; i < state_->dense.size(); ++i) {
    std::swap(state_->executor->tensor(state_->dense[i].entry->parameter), state_->current.dense[i]);
  }
}

void ParameterExchange::after_operator() {
  if (state_->dense_ahead && state_->has_gradients) state_->dense_ahead->after_operator(*state_->executor);
}

void ParameterExchange::pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                                  std::span<float> rows) {
  const SparseTable& table = state_->table_of(parameter);
  const auto index = static_cast<std::size_t>(&table - state_->sparse.data());
  if (table.known_ahead && index < state_->current.rows.size()) {
    Pulled::Rows& pulled = state_->current.rows[index];
    const std::size_t width = ps::pulled_width(table.entry->table);
    const bool expected =
        pulled.taken + keys.size() <= pulled.keys.size() &&
        std::equal(keys.begin(), keys.end(), pulled.keys.begin() + std::ptrdiff_t(pulled.taken));
    if (expected) {
      if (!rows.empty())
        std::memcpy(rows.data(), pulled.values.data() + pulled.taken * width, rows.size_bytes());
      pulled.taken += keys.size();
      return;
    }
  }
  ps::Pull request;
  request.create = state_->has_gradients;
  request.sparse.push_back({table.entry->table.id, keys, rows});
  state_->client->pull(request);
}

void ParameterExchange::push() {
  if (state_->has_gradients) push_gradients();
  if (state_->dense_ahead) state_->dense_ahead->end_step();
}

void ParameterExchange::push_gradients() {
  const bool dense_has_left = state_->dense_ahead && state_->dense_ahead->pushes();
  Flight flight;
  if (!state_->spare_flights.empty()) {
    flight = std::move(state_->spare_flights.back());
    state_->spare_flights.pop_back();
  }
  const auto& entries = state_->plan.entries;
  flight.gradients.resize(entries.size());
  flight.keys.resize(entries.size());
  flight.shows.resize(entries.size());
  flight.clicks.resize(entries.size());
  ps::Push request;
  request.thread = state_->options.thread;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_dense = entries[i].keys.empty();
    if (entries[i].gradient.empty() || (is_dense && dense_has_left)) continue;
    std::swap(state_->executor->tensor(entries[i].gradient), flight.gradients[i]);
    const auto values = std::as_const(flight.gradients[i]).values<float>();
    if (is_dense) {
      request.dense.push_back({entries[i].table.id, values});
      continue;
    }
    std::swap(state_->executor->tensor(entries[i].keys), flight.keys[i]);
    request.sparse.push_back({entries[i].table.id, as_keys(flight.keys[i]), values, {}, {}, entries[i].slot});
    if (entries[i].shows.empty()) continue;
    std::swap(state_->executor->tensor(entries[i].shows), flight.shows[i]);
    std::swap(state_->executor->tensor(entries[i].clicks), flight.clicks[i]);
    request.sparse.back().shows = std::as_const(flight.shows[i]).values<float>();
    request.sparse.back().clicks = std::as_const(flight.clicks[i]).values<float>();
  }
  if (state_->queue && request.sparse.empty() && request.dense.empty()) return;
  flight.pending = state_->queue ? state_->queue->push_async(request) : state_->client->push_async(request);
  state_->flights.push_back(std::move(flight));
  const std::size_t under_way = state_->queue ? 1 : 0;
  while (state_->flights.size() > under_way) {
    state_->wait_for(state_->flights.front().pending);
    state_->spare_flights.push_back(std::move(state_->flights.front()));
    state_->flights.pop_front();
  }
}

void ParameterExchange::drain() {
  while (!state_->flights.empty()) {
    state_->wait_for(state_->flights.front().pending);
    state_->flights.pop_front();
  }
  if (state_->dense_ahead) state_->dense_ahead->drain();
}

}  // namespace fleetrun::runtime
