// Collectives: the job's ranks (World), groups of them (Communicator),
// calls as values, messages with tags (Inbox), and the plan of gradient buckets.

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/base/bucket_plan.h"
#include "collective/base/communicator.h"
#include "collective/base/inbox.h"
#include "collective/groups/world.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/error_copy.h"
#include "runtime/python/array_view.h"
#include "runtime/python/bindings.h"
#include "runtime/python/collective_group.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

using collective::Call;
using collective::CallKind;
using collective::CommunicatorOptions;
using collective::DataType;
using collective::GradientShape;
using collective::Inbox;
using collective::Operation;
using collective::Work;
using collective::World;
using collective::WorldOptions;
using ViewPtr = std::shared_ptr<ArrayView>;

/// A call with all that it refers to. May be made again and again.
struct OwnedCall {
  Call call;
  ViewPtr input, output;
  std::vector<std::size_t> counts, send_counts;
  std::optional<int> device;     // a GPU
  std::vector<std::byte> front;  // of a message
};
using CallPtr = std::shared_ptr<OwnedCall>;

std::string where(const ViewPtr& view) {
  return view->device() ? "on GPU " + std::to_string(*view->device()) : "in the host's memory";
}

CallPtr make_call(CallKind kind, ViewPtr input, ViewPtr output, std::size_t count, Operation operation,
                  int root, std::vector<std::size_t> counts, std::vector<std::size_t> send_counts) {
  auto owned = std::make_shared<OwnedCall>();
  owned->input = std::move(input);
  owned->output = std::move(output);
  owned->counts = std::move(counts);
  owned->send_counts = std::move(send_counts);
  if (owned->input && owned->output && owned->input->type() != owned->output->type()) {
    throw Error(ErrorKind::config,
                std::string(to_string(kind)) + " of " + std::string(to_string(owned->input->type())) +
                    " into " + std::string(to_string(owned->output->type())),
                "give it arrays of one type");
  }
  if (owned->input && owned->output && owned->input->device() != owned->output->device()) {
    throw Error(ErrorKind::config,
                std::string(to_string(kind)) + " of an array " + where(owned->input) + " into one " +
                    where(owned->output),
                "give it arrays of one device");
  }
  const ViewPtr& any = owned->input ? owned->input : owned->output;
  if (any) owned->device = any->device();
  owned->call = {.kind = kind,
                 .type = any ? any->type() : DataType::uint8,
                 .operation = operation,
                 .input = owned->input ? owned->input->data() : nullptr,
                 .output = owned->output ? owned->output->data() : nullptr,
                 .count = count,
                 .counts = owned->counts,
                 .send_counts = owned->send_counts,
                 .root = root,
                 .stream = any ? any->stream() : nullptr};
  return owned;
}

/// A started call; it keeps what the call uses. Dropping it waits for its end.
struct StartedCall {
  GroupPtr group;
  CallPtr call;
  std::unique_ptr<Work> work;

  StartedCall() = default;
  ~StartedCall() {
    if (!work || PyGILState_GetThisThreadState() == nullptr) return;
    const WithoutGil released;
    work.reset();
  }
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;
};
using StartedPtr = std::shared_ptr<StartedCall>;

void run_call(const GroupPtr& group, const CallPtr& call) {
  group->thread.run([group, call] { group->of(call->device).run(call->call); },
                    [group] { group->interrupt(); });
}

/// `stream`: in the place of that which the call's arrays were given with.
StartedPtr start_call(const GroupPtr& group, const CallPtr& call, std::optional<std::uintptr_t> stream) {
  auto started = std::make_shared<StartedCall>();
  started->group = group;
  started->call = call;
  Call with = call->call;
  if (stream) with.stream = reinterpret_cast<void*>(*stream);
  if (call->device && !group->has(*call->device))
    group->thread.run([group, call] { group->of(call->device); }, [group] { group->interrupt(); });
  const WithoutGil released;
  started->work = group->of(call->device).start(with);
  return started;
}

void wait_for(const StartedPtr& started) {
  if (started->work->has_ended()) return started->work->wait();
  started->group->thread.run([started] { started->work->wait(); },
                             [started] { started->group->interrupt(); });
}

/// The calls that give a message with a tag to rank 1 of a communicator, whose Inbox takes it.
std::vector<CallPtr> make_message(const ViewPtr& values, std::int64_t tag) {
  collective::MessageParts parts =
      collective::parts_of({static_cast<const std::byte*>(values->data()), values->bytes()}, tag);
  std::vector<CallPtr> calls;
  const auto add = [&](const void* input, std::size_t bytes) {
    calls.push_back(std::make_shared<OwnedCall>());
    calls.back()->input = values;
    calls.back()->call = {
        .kind = CallKind::send, .type = DataType::uint8, .input = input, .count = bytes, .root = 1};
  };
  add(parts.front.data(), parts.front.size());
  calls.back()->front = std::move(parts.front);  // which stays where it is
  if (!parts.rest.empty()) add(parts.rest.data(), parts.rest.size());
  return calls;
}

/// A receive that was posted.
struct Receive {
  std::shared_ptr<Inbox> inbox;
  Inbox::Posted posted;
};
using ReceivePtr = std::shared_ptr<Receive>;

ReceivePtr post(const std::shared_ptr<Inbox>& inbox, const ViewPtr& values, std::optional<int> source,
                std::int64_t tag) {
  const std::span bytes(static_cast<std::byte*>(values->data()), values->bytes());
  return std::make_shared<Receive>(Receive{inbox, inbox->post(bytes, source, tag, values)});
}

/// In steps, between which Python sees signals.
bool wait_for_message(const Receive& receive, double seconds) {
  constexpr std::chrono::milliseconds kSignalPeriod{50};
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(seconds, 1e8)));
  for (;;) {
    const auto next = std::min(until, Clock::now() + kSignalPeriod);
    {
      const WithoutGil released;
      if (receive.inbox->wait(*receive.posted, next)) break;
    }
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    if (next == until) return false;
  }
  if (receive.posted->error) throw separate_copy(*receive.posted->error);
  return true;
}

/// Ends the meetings of a world, from any thread.
class Interruption {
 public:
  void end(const std::string& why) {
    const std::lock_guard lock(mutex_);
    why_ = why;
  }
  void check() {
    const std::lock_guard lock(mutex_);
    if (why_) throw Error(ErrorKind::network, *why_);
  }

 private:
  std::mutex mutex_;
  std::optional<std::string> why_;
};

/// `environment`: in the place of the process's, whose ranks may be several then.
std::shared_ptr<World> join_world(const std::optional<std::map<std::string, std::string>>& environment,
                                  const std::shared_ptr<Interruption>& interruption) {
  Environ environ = environment ? Environ() : Environ::of_process();
  if (environment)
    for (const auto& [name, value] : *environment) environ.set(name, value);
  WorldOptions options = collective::world_options_from(environ);
  if (interruption) options.concern = [interruption] { interruption->check(); };
  const auto world = std::make_shared<std::shared_ptr<World>>();
  run_interruptibly([=] { *world = World::join(options); });
  return *world;
}

std::optional<std::chrono::milliseconds> milliseconds(std::optional<double> seconds) {
  if (!seconds) return {};
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

GroupPtr make_group(const std::shared_ptr<World>& world, const std::string& name,
                    const std::vector<int>& ranks, std::optional<bool> hierarchical, int inner_size,
                    std::optional<double> call_within, std::optional<double> meet_within) {
  CommunicatorOptions options;
  options.hierarchical = hierarchical;
  options.inner_size = inner_size;
  options.call_within = milliseconds(call_within);
  options.meet_within = milliseconds(meet_within);
  auto group = std::make_shared<Group>(world, ranks, options);
  run_interruptibly([=] { group->communicator = world->make_communicator(name, ranks, options); });
  return group;
}

std::vector<std::vector<std::size_t>> plan(const std::vector<std::string>& names,
                                           const std::vector<std::size_t>& counts,
                                           const std::vector<DataType>& types, double memory_mib,
                                           int groups_size) {
  std::vector<GradientShape> gradients;
  for (std::size_t i = 0; i < names.size(); ++i)
    gradients.push_back({names[i], counts.at(i), types.at(i), false});
  return collective::plan_buckets(gradients, {memory_mib, groups_size});
}

template <class Enum>
void bind_enum(nb::module_& module, const char* name, std::size_t values) {
  nb::enum_<Enum> bound(module, name);
  for (std::size_t i = 0; i < values; ++i) {
    const auto value = static_cast<Enum>(i);
    bound.value(std::string(to_string(value)).c_str(), value);
  }
}

void bind_calls(nb::module_& module) {
  bind_enum<DataType>(module, "DataType", collective::kDataTypes);
  bind_enum<Operation>(module, "Operation", collective::kOperations);
  bind_enum<CallKind>(module, "CallKind", collective::kCallKinds);
  nb::class_<ArrayView>(module, "ArrayView",
                        "The memory of an array, by its DLPack capsule, or by its address in the "
                        "host's memory, where the owner "
                        "keeps it. Throws: Error(config) for one that is not "
                        "contiguous or of a type that collectives do not have.")
      .def(make<ArrayView, nb::ndarray<>, std::uintptr_t>(), "capsule"_a, "stream"_a = 0)
      .def(make<ArrayView, std::uintptr_t, std::size_t, DataType, nb::object>(), "address"_a, "count"_a,
           "type"_a, "owner"_a)
      .def_prop_ro("count", &ArrayView::count, "Number of values.")
      .def_prop_ro("bytes", &ArrayView::bytes)
      .def_prop_ro("type", &ArrayView::type);
  nb::class_<OwnedCall>(
      module, "Call",
      "A collective call with its arrays. count, counts: values for each rank; root: a place in the group.")
      .def(nb::new_(&make_call), "kind"_a, "input"_a = nb::none(), "output"_a = nb::none(), "count"_a = 0,
           "operation"_a = Operation::sum, "root"_a = 0, "counts"_a = std::vector<std::size_t>(),
           "send_counts"_a = std::vector<std::size_t>())
      .def("__str__", [](const OwnedCall& self) { return to_string(self.call); });
  nb::class_<StartedCall>(module, "StartedCall", "A call under way.")
      .def(
          "has_ended", [](const StartedCall& self) { return self.work->has_ended(); },
          "Whether wait() returns at once.")
      .def("wait", wait_for, "Returns when it has ended. Throws: the call's Error.");
}

void bind_messages(nb::module_& module) {
  module.def("message_calls", make_message, "values"_a, "tag"_a,
             "The calls that give a message with a tag to rank 1 of a communicator.");
  nb::class_<Receive>(module, "Receive", "A receive that was posted.")
      .def_prop_ro("sender",
                   [](const Receive& self) -> std::optional<int> {
                     const bool is_here = self.posted->has_ended && self.posted->sender >= 0;
                     return is_here ? std::optional(self.posted->sender) : std::nullopt;
                   })
      .def(
          "has_ended", [](const Receive& self) { return self.posted->has_ended.load(); },
          "Whether wait() returns at once.")
      .def("wait", wait_for_message, "seconds"_a,
           "Whether the message has come within so many seconds. Throws: Error where it will not.");
  nb::class_<Inbox>(module, "Inbox", "Messages with tags, and receives of them.")
      .def(make<Inbox, std::string>(), "name"_a)
      .def("post", post, "values"_a, "source"_a, "tag"_a,
           "Takes the next message of a rank, None: of any, with this tag.")
      .def(
          "withdraw", [](Inbox& self, const Receive& receive) { return self.withdraw(receive.posted); },
          "receive"_a, "Whether nothing has come for it, and nothing will.")
      .def("claim", &Inbox::claim, "source"_a,
           "Whether nobody serves the source yet: the caller does from now on.")
      .def(
          "serve",
          [](const std::shared_ptr<Inbox>& self, int source, const GroupPtr& incoming) {
            const WithoutGil released;
            self->serve(source, *incoming->communicator);
          },
          "source"_a, "incoming"_a,
          "Reads what rank 0 of a communicator sends to its rank 1, until it fails.")
      .def(
          "fail",
          [](Inbox& self, int source, const std::string& why) {
            self.fail(source, Error(ErrorKind::network, why));
          },
          "source"_a, "why"_a, "Receives from it that wait fail.")
      .def("close", &Inbox::close, "No more messages.");
}

}  // namespace

void bind_collective(nb::module_& module) {
  bind_calls(module);
  nb::class_<Group>(module, "Communicator", nb::is_weak_referenceable(),
                    "Ranks that make calls together, in the same order.")
      .def_prop_ro("name", [](const Group& self) { return self.communicator->place().group; })
      .def_prop_ro("rank", [](const Group& self) { return self.communicator->place().rank; })
      .def_prop_ro("size", [](const Group& self) { return self.communicator->place().size; })
      .def("run", run_call, "call"_a,
           "Makes the call. Throws: Error(network) naming a rank that is gone, Error(config) "
           "where the ranks' calls differ.")
      .def("start", start_call, "call"_a, "stream"_a = nb::none(),
           "Starts the call; stream: the cudaStream_t that it comes after.")
      .def("abort", [](Group& self, const std::string& why) { self.abort(Error(ErrorKind::network, why)); })
      .def(
          "set_call_within",
          [](Group& self, double seconds) { self.set_call_within(*milliseconds(seconds)); }, "seconds"_a,
          "How long a call to come may take, where it was made with a call_within.");
  nb::class_<Interruption>(module, "Interruption", "Ends meetings of ranks that are under way.")
      .def(make<Interruption>())
      .def("end", &Interruption::end, "why"_a, "From any thread: they throw Error(network).");
  nb::class_<World>(module, "World", "The ranks of this job.")
      .def_static("join", join_world, "environment"_a = nb::none(), "interruption"_a = nb::none(),
                  "Meets the other ranks. Throws: Error(timeout) naming those that did not come.")
      .def_prop_ro("rank", &World::rank)
      .def_prop_ro("size", &World::size)
      .def_prop_ro("hosts", &World::hosts)
      .def("lost", &World::lost)
      .def(
          "fail",
          [](World& self, const std::string& prefix, const std::string& why) {
            const WithoutGil released;
            self.fail(prefix, Error(ErrorKind::network, why));
          },
          "prefix"_a, "why"_a, "Fails the groups whose names begin so, and those that ranks meet for.")
      .def("make_communicator", make_group, "name"_a, "ranks"_a = std::vector<int>(),
           "hierarchical"_a = nb::none(), "inner_size"_a = 0, "call_within"_a = nb::none(),
           "meet_within"_a = nb::none());
  bind_messages(module);
  module.def("plan_buckets", plan, "names"_a, "counts"_a, "types"_a, "memory_mib"_a, "groups_size"_a,
             "Indices of the gradients of each bucket, in the order in which they are reduced.");
}

}  // namespace fleetrun::python
