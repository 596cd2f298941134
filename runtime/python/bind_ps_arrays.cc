// Parameter servers for scripts with arrays of their own: fleetrun/ps.py. Keys are uint64, values float32,
// both C-contiguous; what comes back is a tensor, which numpy.asarray() takes without a copy.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ps/base/key_groups.h"
#include "ps/base/table_config.h"
#include "ps/client/client.h"
#include "ps/saving/saved_values.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

using ClientPtr = std::shared_ptr<ps::Client>;
using engine::DataType;
using engine::Tensor;
template <class T>
using Values = std::shared_ptr<std::vector<T>>;

// A call that is left behind after Ctrl-C must own its buffers and the client:
// hence the copies that it shares.

template <class T>
Values<T> copy_of(const Buffer& array) {
  const Py_buffer& info = array.contiguous();
  const auto count = static_cast<std::size_t>(info.len / info.itemsize);
  if (static_cast<std::size_t>(info.itemsize) != sizeof(T))
    throw Error(ErrorKind::config, "an array has elements of " + std::to_string(info.itemsize) +
                                       " bytes, not " + std::to_string(sizeof(T)));
  auto values = std::make_shared<std::vector<T>>(count);
  if (count > 0) std::memcpy(values->data(), info.buf, count * sizeof(T));
  return values;
}

Values<float> copy_if_any(const std::optional<Buffer>& array) {
  return array ? copy_of<float>(*array) : std::make_shared<std::vector<float>>();
}

std::shared_ptr<Tensor> make_tensor(std::size_t rows, std::size_t width) {
  return std::make_shared<Tensor>(
      DataType::float32, engine::Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)});
}

void push(const ClientPtr& client, std::uint32_t table, const Buffer& array, const Buffer& values,
          const std::optional<Buffer>& show, const std::optional<Buffer>& click, std::uint16_t slot,
          std::uint32_t thread) {
  const auto keys = copy_of<std::uint64_t>(array);
  const auto gradients = copy_of<float>(values), shows = copy_if_any(show), clicks = copy_if_any(click);
  run_interruptibly([=] {
    client->push({.thread = thread,
                  .sparse = {{.table = table,
                              .keys = *keys,
                              .gradients = *gradients,
                              .shows = *shows,
                              .clicks = *clicks,
                              .slot = slot}},
                  .dense = {}});
  });
}

std::shared_ptr<Tensor> make_integers(std::size_t count) {
  return std::make_shared<Tensor>(DataType::int64, engine::Shape{static_cast<std::int64_t>(count)});
}

/// The distinct keys of each of several runs of `array`, one run after the other: (distinct keys, for each
/// position where its key is among those of its run, how many distinct keys each run has).
nb::tuple distinct_keys(const Buffer& array, const std::vector<std::size_t>& sizes) {
  const auto keys = copy_of<std::uint64_t>(array);
  if (std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) != keys->size())
    throw Error(ErrorKind::config, "the runs do not have " + std::to_string(keys->size()) + " keys");
  const auto places = make_integers(keys->size());
  std::vector<std::uint64_t> found;
  std::vector<std::size_t> counts;
  {
    const WithoutGil released;
    auto place = places->values<std::int64_t>().begin();
    std::span<const std::uint64_t> rest = *keys;
    for (const std::size_t size : sizes) {
      const ps::KeyGroups groups = ps::group_keys(rest.first(size), 1);
      place = std::ranges::copy(groups.group, place).out;
      found.insert(found.end(), groups.keys.begin(), groups.keys.end());
      counts.push_back(groups.keys.size());
      rest = rest.subspan(size);
    }
  }
  const auto distinct = make_integers(found.size());
  std::ranges::copy(found, distinct->values<std::int64_t>().begin());
  return nb::make_tuple(distinct, places, counts);
}

/// One request of any number of tables: (table, keys, width) each.
std::vector<std::shared_ptr<Tensor>> pull_many(
    const ClientPtr& client, const std::vector<std::tuple<std::uint32_t, Buffer, std::size_t>>& tables,
    bool create) {
  std::vector<std::shared_ptr<std::vector<std::uint64_t>>> keys;
  std::vector<std::shared_ptr<Tensor>> rows;
  ps::Pull request{.sparse = {}, .dense = {}, .create = create};
  for (const auto& [table, array, width] : tables) {
    keys.push_back(copy_of<std::uint64_t>(array));
    rows.push_back(make_tensor(keys.back()->size(), width));
    request.sparse.push_back({.table = table, .keys = *keys.back(), .rows = rows.back()->values<float>()});
  }
  run_interruptibly([=] { client->pull(request); });
  return rows;
}

/// One change of several tables: (table, keys, gradients) each.
void push_many(const ClientPtr& client, const std::vector<std::tuple<std::uint32_t, Buffer, Buffer>>& tables,
               std::uint32_t thread) {
  std::vector<std::shared_ptr<std::vector<std::uint64_t>>> keys;
  std::vector<std::shared_ptr<std::vector<float>>> gradients;
  ps::Push request{.thread = thread, .sparse = {}, .dense = {}};
  for (const auto& [table, array, values] : tables) {
    keys.push_back(copy_of<std::uint64_t>(array));
    gradients.push_back(copy_of<float>(values));
    request.sparse.push_back({.table = table, .keys = *keys.back(), .gradients = *gradients.back()});
  }
  run_interruptibly([=] { client->push(request); });
}

void assign_rows(const ClientPtr& client, std::uint32_t table, const Buffer& array, const Buffer& values) {
  const auto keys = copy_of<std::uint64_t>(array);
  const auto rows = copy_of<float>(values);
  run_interruptibly([=] { client->assign(table, *keys, *rows); });
}

void push_dense(const ClientPtr& client, std::uint32_t table, const Buffer& values, std::uint32_t thread) {
  const auto gradients = copy_of<float>(values);
  run_interruptibly([=] {
    client->push({.thread = thread, .sparse = {}, .dense = {{.table = table, .gradients = *gradients}}});
  });
}

nb::tuple get(const ClientPtr& client, std::uint32_t table, const Buffer& array) {
  const auto keys = copy_of<std::uint64_t>(array);
  const auto rows = std::make_shared<ps::StoredRows>();
  run_interruptibly([=] { *rows = client->get(table, *keys); });
  auto values = make_tensor(rows->values.size() / std::max<std::size_t>(rows->width, 1), rows->width);
  std::ranges::copy(rows->values, values->values<float>().begin());
  nb::list statistics;
  for (const ps::StoredStatistics& now : rows->statistics)
    statistics.append(nb::make_tuple(now.slot, now.unseen_days, now.delta_score, now.show, now.click));
  return nb::make_tuple(rows->found, values, statistics);
}

/// {table: array of a dense one, (keys, rows) of a sparse one}.
nb::dict saved_values(const std::string& directory) {
  auto tables = std::make_shared<std::vector<ps::SavedValues>>();
  run_interruptibly([=] { *tables = ps::read_saved_values(directory); });
  nb::dict out;
  for (const ps::SavedValues& table : *tables) {
    const std::size_t rows = table.sparse ? table.keys.size() : 1;
    auto values = make_tensor(rows, table.width);
    std::ranges::copy(table.values, values->values<float>().begin());
    if (!table.sparse) {
      out[nb::str(table.name.c_str())] = values;
      continue;
    }
    auto keys = make_integers(rows);
    std::ranges::copy(table.keys, keys->values<std::int64_t>().begin());
    out[nb::str(table.name.c_str())] = nb::make_tuple(keys, values);
  }
  return out;
}

template <class Result>
Result ask(const std::function<Result()>& question) {
  const auto answer = std::make_shared<Result>();
  run_interruptibly([=] { *answer = question(); });
  return std::move(*answer);
}

/// Takes a dictionary apart; whatever is not asked for is refused by name.
class Fields {
 public:
  Fields(std::string of, const nb::dict& values) : of_(std::move(of)), values_(values) {}

  template <class T>
  void take(const char* name, T& into) {
    known_.emplace_back(name);
    if (!values_.contains(name)) return;
    try {
      into = nb::cast<T>(values_[name]);
    } catch (const nb::cast_error&) {
      throw Error(ErrorKind::config, of_ + ": " + name + " cannot be " + nb::repr(values_[name]).c_str());
    }
  }

  /// The enumerator of the name that "kind" is.
  template <class Kind>
  void take_kind(Kind& into, Kind last) {
    known_.emplace_back("kind");
    if (!values_.contains("kind")) return;
    const auto wanted = nb::cast<std::string>(values_["kind"]);
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      into = static_cast<Kind>(i);
      names.emplace_back(to_string(into));
      if (names.back() == wanted) return;
    }
    throw Error(ErrorKind::config, of_ + ": there is no '" + printable(wanted) + "'",
                "there are " + join(names, ", "));
  }

  void finish() const {
    for (const auto& [name, value] : values_) {
      const auto text = nb::cast<std::string>(name);
      if (std::find(known_.begin(), known_.end(), text) == known_.end())
        throw Error(ErrorKind::config, of_ + " has no '" + printable(text) + "'",
                    "it has " + join(known_, ", "));
    }
  }

 private:
  std::string of_;
  const nb::dict& values_;
  std::vector<std::string> known_;
};

ps::UpdateRule rule_from(const std::string& of, const nb::dict& values) {
  ps::UpdateRule rule;
  Fields fields(of, values);
  fields.take_kind(rule.kind, std::rbegin(ps::kUpdateRules)->kind);
  fields.take("learning_rate", rule.learning_rate);
  fields.take("beta1", rule.beta1);
  fields.take("beta2", rule.beta2);
  fields.take("epsilon", rule.epsilon);
  fields.take("initial_accumulator", rule.initial_accumulator);
  fields.take("momentum", rule.momentum);
  fields.take("nesterov", rule.nesterov);
  fields.take("rho", rule.rho);
  fields.take("centered", rule.centered);
  fields.take("l1", rule.l1);
  fields.take("l2", rule.l2);
  fields.take("learning_rate_power", rule.learning_rate_power);
  fields.take("l1_decay", rule.l1_decay);
  fields.take("l2_decay", rule.l2_decay);
  fields.take("own_decay", rule.own_decay);
  fields.take("scheduled", rule.is_scheduled);
  fields.take("low", rule.low);
  fields.take("high", rule.high);
  fields.finish();
  return rule;
}

ps::Initializer initializer_from(const nb::dict& values) {
  ps::Initializer initializer;
  Fields fields("the initializer", values);
  fields.take_kind(initializer.kind, ps::Initializer::Kind::truncated_normal);
  fields.take("a", initializer.a);
  fields.take("b", initializer.b);
  fields.take("seed", initializer.seed);
  fields.finish();
  return initializer;
}

ps::Accessor accessor_from(const nb::dict& values) {
  ps::Accessor accessor;
  Fields fields("the accessor", values);
  fields.take_kind(accessor.kind, ps::Accessor::Kind::ctr);
  fields.take("nonclk_coeff", accessor.nonclk_coeff);
  fields.take("click_coeff", accessor.click_coeff);
  fields.take("embedx_threshold", accessor.embedx_threshold);
  fields.take("base_threshold", accessor.base_threshold);
  fields.take("delta_threshold", accessor.delta_threshold);
  fields.take("delta_keep_days", accessor.delta_keep_days);
  fields.take("show_click_decay_rate", accessor.show_click_decay_rate);
  fields.take("delete_threshold", accessor.delete_threshold);
  fields.take("delete_after_unseen_days", accessor.delete_after_unseen_days);
  fields.take("show_scale", accessor.show_scale);
  fields.take("zero_init", accessor.zero_init);
  nb::dict embed_rule;
  fields.take("embed_rule", embed_rule);
  fields.finish();
  if (embed_rule.size() != 0) accessor.embed_rule = rule_from("the accessor's embed_rule", embed_rule);
  return accessor;
}

ps::Admission admission_from(const nb::dict& values) {
  ps::Admission admission;
  Fields fields("the admission", values);
  fields.take_kind(admission.kind, ps::Admission::Kind::probability);
  fields.take("threshold", admission.threshold);
  fields.take("probability", admission.probability);
  fields.take("seed", admission.seed);
  fields.finish();
  return admission;
}

ps::TableConfig table_config(std::uint32_t id, const std::string& name, bool sparse, std::uint64_t width,
                             const nb::dict& rule, const nb::dict& initializer, const nb::dict& accessor,
                             const nb::dict& admission, std::uint64_t min_block, bool on_disk,
                             std::uint32_t expire_seconds) {
  ps::TableConfig config;
  config.id = id;
  config.name = name;
  config.kind = sparse ? ps::TableConfig::Kind::sparse : ps::TableConfig::Kind::dense;
  config.width = width;
  config.rule = rule_from("the rule", rule);
  config.initializer = initializer_from(initializer);
  config.accessor = accessor_from(accessor);
  config.admission = admission_from(admission);
  config.min_block = min_block;
  config.on_disk = on_disk;
  config.expire_seconds = expire_seconds;
  return config;
}

}  // namespace

void bind_ps_arrays(nb::module_& module) {
  module.def("table_config", table_config, "id"_a, "name"_a, "sparse"_a, "width"_a, "rule"_a, "initializer"_a,
             "accessor"_a, "admission"_a, "min_block"_a, "on_disk"_a, "expire_seconds"_a,
             "A TableConfig of dictionaries. Throws: Error(config) naming a key that there is not, or a "
             "value that cannot be.");
  module.def(
      "pulled_width", [](const ps::TableConfig& config) { return ps::pulled_width(config); }, "table"_a,
      "float32 values that a pull gives for a key.");
  module.def(
      "check_tables", [](const std::vector<ps::TableConfig>& tables) { ps::check_tables(tables); },
      "tables"_a, "Throws: Error(config) for tables that cannot be.");
  module.def("saved_values", saved_values, "directory"_a,
             "What servers saved: {table: values of a dense one, (keys, rows) of a sparse one}. Throws: "
             "Error(data).");
  module.def(
      "ps_push", push, "client"_a, "table"_a, "keys"_a, "gradients"_a, "shows"_a, "clicks"_a, "slot"_a,
      "thread"_a,
      "Shape: keys uint64 [n], gradients float32 [n * width], shows and clicks float32 [n] or None. Throws: "
      "Error(data) for gradients that are NaN or infinite; nothing is applied then.");
  module.def(
      "ps_pull_many", pull_many, "client"_a, "tables"_a, "create"_a,
      "Rows of each of `tables`, in one request. tables: (table, keys, width) each. Shape: keys uint64 "
      "[n] -> float32 [n, width]; create=False makes no rows.");
  module.def("ps_distinct", distinct_keys, "keys"_a, "sizes"_a,
             "(distinct keys, places, counts) of runs of keys, one after the other. Shape: keys uint64 [sum "
             "of sizes] -> int64 [sum of counts], each run's in order of first appearance, and int64 [sum of "
             "sizes], where a position's key is among those of its run.");
  module.def("ps_push_many", push_many, "client"_a, "tables"_a, "thread"_a,
             "ps_push of several tables as one change. tables: (table, keys, gradients) each. Throws: as "
             "ps_push.");
  module.def("ps_assign", assign_rows, "client"_a, "table"_a, "keys"_a, "rows"_a,
             "Shape: keys uint64 [n], each once, rows float32 [n * width]. Throws: Error(config) for a key "
             "that is there twice, Error(data) for values that are NaN or infinite.");
  module.def("ps_push_dense", push_dense, "client"_a, "table"_a, "gradients"_a, "thread"_a,
             "Shape: float32 [width]. Throws: as ps_push.");
  module.def("ps_get", get, "client"_a, "table"_a, "keys"_a,
             "(found, values, statistics) of rows as they are stored. Shape: keys uint64 [n] -> found bool "
             "[n], values "
             "float32 [n, width], statistics n times (slot, unseen days, delta score, show, click) or [].");
  module.def(
      "ps_shrink",
      [](const ClientPtr& client, std::uint32_t table) {
        return ask<std::uint64_t>([=] { return client->shrink(table); });
      },
      "client"_a, "table"_a, "Ends a day; how many rows went.");
  module.def(
      "ps_stat",
      [](const ClientPtr& client) { return ask<std::vector<std::string>>([=] { return client->stat(); }); },
      "client"_a, "What each server has done, as JSON, by rank.");
  module.def(
      "ps_save",
      [](const ClientPtr& client, const std::string& directory, std::uint32_t mode) {
        run_interruptibly([=] { client->save(directory, ps::save_mode_of(mode)); });
      },
      "client"_a, "directory"_a, "mode"_a,
      "Client.save(). Throws: Error(config) for another mode, Error(host).");
  module.def(
      "ps_load",
      [](const ClientPtr& client, const std::string& directory) {
        return ask<std::string>([=] { return client->load(directory); });
      },
      "client"_a, "directory"_a,
      "What is wrong with the newest save, \"\" when all is well. Throws: Error(data).");
  module.def(
      "ps_begin_pass",
      [](const ClientPtr& client, std::uint32_t threads) {
        run_interruptibly([=] { client->begin_epoch(threads); });
      },
      "client"_a, "threads"_a, "Mode sync: a pass of threads 0 … threads - 1 of every trainer.");
  module.def(
      "ps_leave_pass",
      [](const ClientPtr& client, std::uint32_t thread) {
        run_interruptibly([=] { client->leave_epoch(thread); });
      },
      "client"_a, "thread"_a, "Mode sync: this thread pushes no more in the pass.");
}

}  // namespace fleetrun::python
