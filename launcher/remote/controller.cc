#include "launcher/remote/controller.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <optional>

#include "launcher/host/job_signals.h"
#include "launcher/remote/host_output.h"
#include "launcher/remote/log_collection.h"
#include "launcher/remote/travels.h"
#include "launcher/remote/tunnel.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kRollBack{10};          // for agents without an order
constexpr std::chrono::seconds kLeaving{5}, kLost{1};  // for agents to end; where one cannot be heard, less
constexpr std::chrono::seconds kRemoving{60};          // where they remove what was sent
constexpr std::chrono::minutes kCollecting{10};
constexpr std::size_t kMaxTold = 16;  // of more hosts than these, nobody wants to hear that each has come
constexpr int kTriesInSilence = 3;    // of a login, before somebody who waits is told
constexpr std::chrono::seconds kForced{5};  // after a second signal
constexpr int kControllerRefused = 125;     // fleetrun's own exit status
constexpr std::size_t kMaxNamed = 50;       // refused hosts in one message

enum class Stage { logging_in, rolling_back, running, ending, collecting, leaving, over };

/// What is known of one host.
struct State {
  std::optional<Hello> hello;
  std::optional<LoginFailure> refused, failing;  // for good; until now
  int tries = 1;
  bool gone = false;           // its agent
  std::string cut_off;         // why, while the job ran
  bool in_job = false;         // it has joined the coordinator
  bool lost = false;           // and there is no word from it: nobody waits for it at the end
  std::optional<Ended> ended;  // its launcher
  bool collected = false;
  std::unique_ptr<Tunnel> tunnel;
  std::unique_ptr<LogReceiver> logs;
  std::string marker;
};

class Controller final : public FanOutListener, public ControllerListener {
 public:
  Controller(const ControllerPlan& plan, ControllerSettings settings, ControllerObserver& observer)
      : plan_(plan),
        settings_(std::move(settings)),
        observer_(observer),
        hosts_(plan.hosts.size()),
        travels_(plan.hosts.size()),
        signals_(loop_, signals_of(settings_.signals, settings_.hangup_ignored),
                 [this](int number) { on_signal(number); }),
        timer_(loop_),
        forced_(loop_) {}

  ControllerResult run() {
    HostOutputSettings shown;
    shown.output = settings_.output;
    shown.raw = plan_.raw;
    for (const HostPart& part : plan_.hosts) shown.names.push_back(written(part.host));
    shown.hold = [this](bool hold) { hold_output(hold); };
    output_ = show_hosts(loop_, std::move(shown));
    fan_out_ = make_fan_out(loop_, settings_.fan_out, *this);
    std::vector<Destination> destinations;
    for (std::uint32_t i = 0; i < plan_.hosts.size(); ++i)
      destinations.push_back({i, plan_.hosts[i].host, plan_.hosts[i].here});
    fan_out_->start(std::move(destinations));
    arm(settings_.login_patience, [this] { on_late(); });
    loop_.run();
    if (refusal_) throw Error(*refusal_);
    return std::move(result_);
  }

  /// Output that nobody takes stays on the hosts; what their launchers say to the coordinator comes all the
  /// same.
  void hold_output(bool hold) {
    if (!settings_.fan_out.srun.empty()) return fan_out_->set_reading(!hold);
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].hello && !hosts_[i].gone) fan_out_->send(i, Hold{hold});
    }
  }

  // Logging in.

  void on_joined(std::uint32_t host, const Hello& hello) override {
    hosts_[host].hello = hello;
    observer_.say(LogLevel::debug, name(host) + ": agent started");
    logged_in();
  }

  void on_refused(std::uint32_t host, const LoginFailure& failure, int tries) override {
    hosts_[host].refused = failure;
    hosts_[host].tries = tries;
    hosts_[host].gone = true;
    observer_.say(LogLevel::debug, name(host) + ": " + failure.reason);
    logged_in();
  }

  void on_again(std::uint32_t host, const LoginFailure& failure, int tries) override {
    hosts_[host].failing = failure;
    hosts_[host].tries = tries;
    const bool news = tries == kTriesInSilence && !std::exchange(told_of_tries_, true);
    observer_.say(news ? LogLevel::info : LogLevel::debug,
                  name(host) + ": " + failure.reason + ", and is tried again");
  }

  void on_gone(std::uint32_t host, const std::string& why) override {
    State& state = hosts_[host];
    state.gone = true;
    state.tunnel.reset();
    if (stage_ == Stage::logging_in && state.hello) {
      state.refused = LoginFailure{why.empty() ? "its agent ended" : why,
                                   "log in by hand: does `fleetrun --version` run there?"};
      state.hello.reset();
      return logged_in();
    }
    output_->end(host);
    if ((stage_ == Stage::running || stage_ == Stage::ending) && !state.ended) on_cut_off(host, why);
    advance();
  }

  void on_progress(std::uint32_t host, const Progress& progress) override {
    if (stage_ != Stage::logging_in) return;
    arm(settings_.login_patience, [this] { on_late(); });
    const std::string line =
        travels_.moved(host, progress, count([](const State& state) { return state.hello.has_value(); }));
    if (!line.empty()) observer_.say(LogLevel::info, line);
  }

  void on_message(std::uint32_t host, Message message) override {
    std::visit([&](auto& one) { on(host, one); }, message);
  }

  // What the coordinator tells.

  void on_event(const ClusterEvent& event) override {
    if (const auto* joined = std::get_if<NodeJoined>(&event)) follow(joined->name, false);
    if (const auto* lost = std::get_if<NodeLost>(&event)) follow(lost->name, true);
    if (const auto* ended = std::get_if<JobEnded>(&event)) return on_job_over(ended->end);
    if (const auto notice = notice_of(event)) observer_.notify(*notice);
    observer_.say(level_of(event), to_string(event));
  }
  void on_warning(const std::string& text) override { observer_.say(LogLevel::warning, text); }

 private:
  void follow(const std::string& node_name, bool lost) {
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (plan_.hosts[i].host.name != node_name) continue;
      hosts_[i].in_job = true;
      hosts_[i].lost = lost;
    }
    advance();
  }

  LogLevel level_of(const ClusterEvent& event) const {
    if (std::holds_alternative<NodeJoined>(event) && hosts_.size() > kMaxTold) return LogLevel::debug;
    const bool trouble =
        std::holds_alternative<NodeLost>(event) || std::holds_alternative<NodeFailed>(event) ||
        std::holds_alternative<NodeRefused>(event) || std::holds_alternative<RestartDecided>(event) ||
        std::holds_alternative<NodeParked>(event) || std::holds_alternative<ProgramsDiffer>(event);
    return trouble ? LogLevel::warning : LogLevel::info;
  }

  std::string name(std::uint32_t host) const { return written(plan_.hosts[host].host); }

  std::size_t count(bool (*is)(const State&)) const {
    return static_cast<std::size_t>(std::count_if(hosts_.begin(), hosts_.end(), is));
  }

  void logged_in() {
    if (stage_ != Stage::logging_in) return advance();
    const std::size_t refused = count([](const State& state) { return state.refused.has_value(); });
    const std::size_t joined = count([](const State& state) { return state.hello.has_value(); });
    if (refused + joined < hosts_.size()) return;
    if (refused > 0 && !(plan_.elastic && static_cast<int>(joined) >= plan_.nodes.min))
      return roll_back(refusal());
    for (std::uint32_t i = 0; refused > 0 && i < hosts_.size(); ++i) {
      if (hosts_[i].refused)
        observer_.say(LogLevel::warning, name(i) + " is left out: " + hosts_[i].refused->reason);
    }
    try {
      begin();
    } catch (const Error& error) {
      roll_back(error);
    }
  }

  /// Some host has no verdict still.
  void on_late() {
    for (State& state : hosts_) {
      if (!state.hello && !state.refused)
        state.refused = state.failing.value_or(LoginFailure{"no verdict of its login in time", ""});
    }
    logged_in();
  }

  Error refusal() const {
    std::string text;
    std::vector<std::string> hints;
    std::size_t refused = 0;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      const auto& failure = hosts_[i].refused;
      if (!failure) continue;
      if (++refused > kMaxNamed) continue;
      text += "\n    " + name(i) + ": " + failure->reason +
              (hosts_[i].tries > 1 ? ", tried " + std::to_string(hosts_[i].tries) + " times" : "");
      if (!failure->hint.empty() && std::find(hints.begin(), hints.end(), failure->hint) == hints.end())
        hints.push_back(failure->hint);
    }
    if (refused > kMaxNamed) text += "\n    and " + std::to_string(refused - kMaxNamed) + " others";
    return Error(ErrorKind::network,
                 std::to_string(refused) + " of " + std::to_string(hosts_.size()) +
                     (hosts_.size() == 1 ? " host" : " hosts") + " cannot be used; nothing was started" +
                     (refused == hosts_.size() ? ":" : ", nor on the others:") + text,
                 join(hints, "; "));
  }

  /// Nothing has run anywhere; agents that are there end.
  void roll_back(std::optional<Error> why) {
    if (stage_ == Stage::rolling_back) return fan_out_->kill();
    stage_ = Stage::rolling_back;
    refusal_ = std::move(why);
    fan_out_->close();
    arm(kRollBack, [this] { fan_out_->kill(); });
    advance();
  }

  // Running.

  void begin() {
    if (settings_.fan_out.cargo) observer_.say(LogLevel::info, travels_.summary());
    std::vector<std::string> addresses;  // to listen on
    std::vector<std::string> told(hosts_.size());
    std::vector<std::size_t> listens(hosts_.size());
    std::string own_part;  // address of the trainers here, where there are some beside those of others
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (!hosts_[i].hello || plan_.hosts[i].here) continue;
      if (!address_of(i).empty()) {
        if (own_part.empty() && has_own_part()) own_part = address_for(i).first;
        continue;
      }
      const auto [own, as_seen] = address_for(i);
      if (own_part.empty()) own_part = own;
      listens[i] = index_of(addresses, own);
      told[i] = as_seen;
    }
    const std::size_t inside = index_of(addresses, "127.0.0.1");  // where tunnels come out
    coordinator_ = settings_.start_coordinator(loop_, addresses, *this);
    const std::vector<Endpoint> endpoints = coordinator_->endpoints();
    inside_ = endpoints.at(inside);
    stage_ = Stage::running;
    timer_.cancel();
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (!hosts_[i].hello) continue;
      LaunchOrder order = plan_.hosts[i].order;
      order.secret = settings_.secret;
      if (plan_.hosts[i].here) {
        order.coordinator = inside_;
        order.address = own_part;
      } else if (told[i].empty()) {
        order.address = address_of(i);
        open_tunnel(i);
      } else {
        order.coordinator = endpoints.at(listens[i]);
        order.coordinator.host = told[i];
      }
      fan_out_->send(i, Order{encode(order)});
    }
    observer_.say(LogLevel::debug, "agents on all hosts have their orders");
  }

  bool has_own_part() const {
    return std::any_of(plan_.hosts.begin(), plan_.hosts.end(),
                       [](const HostPart& part) { return part.here; });
  }

  /// The address at which ssh reached the host, as it is known there. Empty: it did not come by ssh.
  std::string address_of(std::uint32_t host) const {
    const std::vector<std::string> words = split(hosts_[host].hello->connection, ' ');
    return words.size() == 4 ? words[2] : "";
  }

  void open_tunnel(std::uint32_t host) {
    hosts_[host].tunnel = std::make_unique<Tunnel>(
        loop_, [this, host](Message message) { fan_out_->send(host, std::move(message)); });
  }

  static std::size_t index_of(std::vector<std::string>& addresses, const std::string& address) {
    const auto found = std::find(addresses.begin(), addresses.end(), address);
    if (found != addresses.end()) return static_cast<std::size_t>(found - addresses.begin());
    addresses.push_back(address);
    return addresses.size() - 1;
  }

  /// Our address on the way to `host`: as it is here, and as that host has to write it. The login came from
  /// it, unless it came through somewhere else; then the route says.
  std::pair<std::string, std::string> address_for(std::uint32_t host) const {
    const std::string seen = split(hosts_[host].hello->connection + " ", ' ').front();
    if (const auto own = own_address(settings_.own, seen)) return {*own, seen};
    if (const auto relay = fan_out_->via(host)) return address_for(*relay);
    if (const auto own = address_towards(plan_.hosts[host].host.name)) return {*own, *own};
    throw Error(ErrorKind::network,
                "no address of this host is known by which " + name(host) + " could reach it",
                "write that host's address in the list; logins through a jump host do not say ours");
  }

  void on_job_over(const JobEnd& end) {
    if (stage_ != Stage::running) return;
    result_.end = end;
    result_.exit_status = end.exit_status;
    stage_ = Stage::ending;
    output_->hurry();
    stop_strangers();
    arm(settings_.end_patience, [this] {
      for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i].hello && !hosts_[i].gone && !hosts_[i].ended)
          observer_.say(LogLevel::warning, name(i) + " does not end, and is cut off");
      }
      let_go();
    });
    advance();
  }

  /// The coordinator has gone; a launcher that had not come to it yet would look for it in vain.
  void stop_strangers() {
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (!hosts_[i].in_job && !hosts_[i].ended) fan_out_->send(i, Signal{SIGTERM});
    }
  }

  /// Its channel broke while the job ran.
  void on_cut_off(std::uint32_t host, const std::string& why) {
    hosts_[host].cut_off = "the connection to " + name(host) + " broke" + (why.empty() ? "" : ": " + why);
    observer_.say(LogLevel::warning, hosts_[host].cut_off + "; what runs there is stopped");
    if (stage_ == Stage::running && !hosts_[host].in_job)
      give_up_on(host, kControllerRefused, hosts_[host].cut_off);
  }

  /// A host that is not in the job yet will not come.
  void give_up_on(std::uint32_t host, int status, const std::string& why) {
    const std::size_t left =
        count([](const State& state) { return state.hello && !state.gone && !state.ended; });
    if (plan_.elastic && static_cast<int>(left) >= plan_.nodes.min)
      return observer_.say(LogLevel::warning, name(host) + " is left out: " + why);
    coordinator_->end(
        {.exit_status = status, .why = why, .node = plan_.hosts[host].host.name, .failure = {}});
  }

  // What agents say.

  template <class Other>
  void on(std::uint32_t, const Other&) {}

  void on(std::uint32_t host, const Dial& dial) {
    if (hosts_[host].tunnel) hosts_[host].tunnel->on(dial, inside_);
  }
  void on(std::uint32_t host, const Bytes& bytes) {
    if (hosts_[host].tunnel) hosts_[host].tunnel->on(bytes);
  }
  void on(std::uint32_t host, const Hangup& hangup) {
    if (hosts_[host].tunnel) hosts_[host].tunnel->on(hangup);
  }

  void on(std::uint32_t host, const Output& output) { output_->take(host, output.bytes); }
  void on(std::uint32_t host, const Log& record) { observer_.say(name(host), record); }

  void on(std::uint32_t host, const Ended& ended) {
    State& state = hosts_[host];
    state.ended = ended;
    output_->end(host);
    observer_.say(LogLevel::debug, name(host) + ": launcher ended with " + std::to_string(ended.status));
    const bool refuses = ended.screen.find("fleetrun: error:") != std::string::npos;
    if (stage_ == Stage::running && ended.status != 0 && (refuses || !state.in_job))
      give_up_on(host, ended.status,
                 "fleetrun on " + name(host) + " ended with " + std::to_string(ended.status));
    advance();
  }

  void on(std::uint32_t host, const File& file) {
    State& state = hosts_[host];
    if (!state.logs || stage_ != Stage::collecting) return;
    try {
      state.logs->take(file);
    } catch (const Error& error) {
      observer_.say(LogLevel::warning, "logs of " + name(host) + ": " + error.what());
      state.logs.reset();
    }
  }

  void on(std::uint32_t host, const FilesEnd& end) {
    State& state = hosts_[host];
    if (!end.error.empty()) observer_.say(LogLevel::warning, "logs of " + name(host) + ": " + end.error);
    collected(state);
    advance();
  }

  static void collected(State& state) {
    state.collected = true;
    if (!state.marker.empty()) ::unlink(state.marker.c_str());
  }

  // The end.

  /// Goes on to the next stage where nothing keeps the present one.
  void advance() {
    if (stage_ == Stage::rolling_back || stage_ == Stage::leaving) {
      if (fan_out_->alive() == 0) finish();
    } else if (stage_ == Stage::ending) {
      const bool waits = std::any_of(hosts_.begin(), hosts_.end(),
                                     [](const State& state) { return answers(state) && !state.ended; });
      if (!waits) collect();
    } else if (stage_ == Stage::collecting) {
      const bool waits = std::any_of(hosts_.begin(), hosts_.end(), [](const State& state) {
        return state.logs && answers(state) && !state.collected;
      });
      if (!waits) let_go();
    }
  }

  static bool answers(const State& state) { return state.hello && !state.gone && !state.lost; }

  void collect() {
    stage_ = Stage::collecting;
    timer_.cancel();
    if (!plan_.collect_logs) return let_go();
    arm(kCollecting, [this] {
      observer_.say(LogLevel::warning, "logs are not here yet after 10 minutes, and are left where they are");
      let_go();
    });
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      State& state = hosts_[i];
      if (!answers(state)) continue;
      const std::string directory = plan_.log_dir + "/" + plan_.hosts[i].host.name;
      ::mkdir(plan_.log_dir.c_str(), 0700);
      ::mkdir(directory.c_str(), 0700);
      std::string marker = directory + "/.fleetrun-XXXXXX";
      const UniqueFd file(::mkostemp(marker.data(), O_CLOEXEC));
      if (file) state.marker = marker;
      state.logs = std::make_unique<LogReceiver>(directory);
      fan_out_->send(i, Collect{file ? marker.substr(marker.rfind('/') + 1) : ""});
    }
    advance();
  }

  void let_go() {
    if (stage_ == Stage::leaving) return;
    stage_ = Stage::leaving;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      collected(hosts_[i]);
      if (hosts_[i].ended) fan_out_->send(i, Bye{});
    }
    fan_out_->close();
    const bool any_lost =
        std::any_of(hosts_.begin(), hosts_.end(), [](const State& state) { return state.lost; });
    const auto& cargo = settings_.fan_out.cargo;
    const auto leaving = cargo && cargo->list.removed ? kRemoving : kLeaving;
    arm(any_lost ? kLost : leaving, [this] { fan_out_->kill(); });
    advance();
  }

  void finish() {
    stage_ = Stage::over;
    explain_cut();
    choose_screen();
    output_->drain([this] { loop_.stop(); });
  }

  /// An agent that is cut off stops its host as a user there would; the reason is known here.
  void explain_cut() {
    for (std::uint32_t i = 0; i < hosts_.size() && !result_.stopped; ++i) {
      if (hosts_[i].cut_off.empty() || result_.end.failure || result_.end.exit_status == 0 ||
          plan_.hosts[i].host.name != result_.end.node)
        continue;
      result_.exit_status = kControllerRefused;
      result_.end.why = hosts_[i].cut_off;
    }
  }

  /// The screen of the host that decided the outcome.
  void choose_screen() {
    if (result_.exit_status == 0) return;
    const std::string& decided = result_.end.node;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      const auto& ended = hosts_[i].ended;
      if (!ended || ended->status == 0 || ended->screen.empty()) continue;
      const bool named = plan_.hosts[i].host.name == decided;
      if (!named && (!decided.empty() || !result_.screen.empty())) continue;
      result_.host = name(i);
      result_.screen = ended->screen;
    }
    if (result_.screen.empty() && result_.end.failure) {
      result_.host = decided;
      result_.screen = result_.end.failure->screen;
    }
  }

  // Signals.

  void on_signal(int number) {
    const SignalRule rule = rule_for(settings_.signals, number, settings_.hangup_ignored);
    if (rule.action == SignalAction::ignore) return;
    if (rule.action == SignalAction::forward) return forward(rule.as != 0 ? rule.as : number);
    stop(number, rule.action == SignalAction::drain ? kDrained : number);
  }

  /// To the processes: each launcher does with it what its own map says.
  void forward(int number) {
    for (std::uint32_t i = 0; i < hosts_.size() && stage_ == Stage::running; ++i) {
      if (hosts_[i].hello && !hosts_[i].ended) fan_out_->send(i, Signal{number});
    }
  }

  void stop(int number, int as) {
    if (as == kDrained && result_.stopped) return;  // Slurm may say it twice
    const bool again = std::exchange(result_.stopped, true);
    observer_.tell(again ? "Force quit" : "Terminating with signal " + std::to_string(number));
    if (!again) signal_ = as;
    if (stage_ == Stage::logging_in || stage_ == Stage::rolling_back) {
      result_.exit_status = status_of_stop(signal_);
      return roll_back(std::nullopt);
    }
    if (!again) {
      if (stage_ == Stage::running) coordinator_->stop(as);
      if (stage_ == Stage::ending) stop_strangers();
      return;
    }
    if (std::exchange(forcing_, true)) return fan_out_->kill();
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      fan_out_->send(i, Signal{SIGTERM});
      fan_out_->send(i, Signal{SIGINT});
    }
    forced_.expires_after(kForced);
    forced_.async_wait([this](const error_code& error) {
      if (error || stage_ == Stage::over) return;
      if (stage_ == Stage::running) result_.exit_status = status_of_stop(signal_);
      let_go();
    });
  }

  void arm(std::chrono::milliseconds after, std::function<void()> action) {
    timer_.expires_after(after);
    timer_.async_wait([action = std::move(action)](const error_code& error) {
      if (!error) action();
    });
  }

  const ControllerPlan& plan_;
  ControllerSettings settings_;
  ControllerObserver& observer_;
  asio::io_context loop_;
  std::vector<State> hosts_;
  Travels travels_;
  std::unique_ptr<HostOutput> output_;
  std::unique_ptr<FanOut> fan_out_;
  std::unique_ptr<ControllerCoordinator> coordinator_;
  Endpoint inside_;  // where it listens for tunnels
  JobSignals signals_;
  asio::steady_timer timer_, forced_;
  Stage stage_ = Stage::logging_in;
  int signal_ = 0;  // the first one
  bool forcing_ = false, told_of_tries_ = false;
  std::optional<Error> refusal_;
  ControllerResult result_;
};

}  // namespace

ControllerResult run_on_hosts(const ControllerPlan& plan, ControllerSettings settings,
                              ControllerObserver& observer) {
  return Controller(plan, std::move(settings), observer).run();
}

}  // namespace fleetrun::launcher::remote
