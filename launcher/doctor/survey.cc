// Stages: each ends when every host that is still there has answered, or its time is over.
//
//   asking     login, three readings of its clock, host check
//   listening  the hosts listen
//   dialing    each dials those after it
#include "launcher/doctor/survey.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <limits>

#include "launcher/doctor/make_host_check.h"
#include "launcher/doctor/probe.h"
#include "launcher/doctor/reach.h"
#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"
#include "launcher/remote/own_host.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/own_file.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/secure/crypto.h"

namespace fleetrun::launcher::doctor {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kAnswerTime{30};  // for one question
constexpr int kClockReadings = 3;
constexpr std::size_t kNeighbours = 32;

std::int64_t clock_now() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// A file that says whose directory it is, as long as it is needed.
class Marker {
 public:
  explicit Marker(const std::string& directory) {
    const std::string name = ".fleetrun-doctor-" + hex(random_bytes(8));
    const std::string path = directory + "/" + name;
    const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
    if (!file) return;
    path_ = path;
    name_ = name;
  }
  ~Marker() { remove(); }
  void remove() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;
  const std::string& name() const noexcept { return name_; }

 private:
  std::string path_, name_;
};

class Survey final : public remote::FanOutListener {
 public:
  explicit Survey(const SurveySettings& settings)
      : settings_(settings), own_(remote::own_host()), marker_(settings.spec.directory), deadline_(loop_) {
    remote::learn_names(own_, settings.hosts);
    for (const RemoteHost& host : settings.hosts) {
      HostReport& report = reports_.emplace_back();
      report.name = host.name;
      report.here = remote::is_own(own_, host.name);
      states_.emplace_back();
    }
    remote::FanOutSettings fan_out = settings.fan_out;
    fan_out.words = "doctor --probe";
    fan_out_ = remote::make_fan_out(loop_, fan_out, *this);
  }

  std::vector<HostReport> run() {
    std::vector<remote::Destination> destinations;
    for (std::size_t i = 0; i < settings_.hosts.size(); ++i)
      destinations.push_back({static_cast<std::uint32_t>(i), settings_.hosts[i], is_here(i)});
    left_ = reports_.size();
    next_ = [this] { ask_to_listen_all(); };
    fan_out_->start(std::move(destinations));
    int stopped_by = 0;
    asio::signal_set signals(loop_, SIGINT, SIGTERM, SIGHUP);
    signals.async_wait([&](const error_code& error, int number) {
      if (error) return;
      stopped_by = number;
      fan_out_->kill();
      loop_.stop();
    });
    loop_.run();
    signals.clear();
    if (stopped_by != 0) {
      marker_.remove();
      ::raise(stopped_by);  // which ends this process as it would have
    }
    return std::move(reports_);
  }

  void on_joined(std::uint32_t host, const remote::Hello& hello) override {
    states_[host].there = true;
    states_[host].connection = hello.connection;
    await_answers();
    ask(host, ask_clock());
  }

  void on_refused(std::uint32_t host, const remote::LoginFailure& failure, int) override {
    reports_[host].login_failure = failure.reason;
    reports_[host].login_hint = failure.hint;
    answered(host);
  }

  void on_message(std::uint32_t host, remote::Message message) override {
    const auto* output = std::get_if<remote::Output>(&message);
    if (!output || !states_[host].there) return;
    try {
      on_answer(host, answer_from_json(output->bytes));
    } catch (const Error& error) {
      lose(host, error.what(), error.hint());
    }
  }

  void on_gone(std::uint32_t host, const std::string& why) override {
    if (states_[host].there) lose(host, "its doctor is gone" + (why.empty() ? "" : ": " + why), "");
    if (closing_ && fan_out_->alive() == 0) loop_.stop();
  }

 private:
  struct State {
    bool there = false, answered = false;
    std::string connection;
    std::int64_t asked_ns = 0, best_round_trip = std::numeric_limits<std::int64_t>::max();
    int readings = 0;
    std::vector<Endpoint> endpoints;
  };

  bool is_here(std::size_t host) const { return reports_[host].here; }

  void ask(std::uint32_t host, const std::string& question) {
    states_[host].asked_ns = clock_now();
    fan_out_->send(host, remote::Order{question});
  }

  void on_answer(std::uint32_t host, Answer answer) {
    State& state = states_[host];
    HostReport& report = reports_[host];
    if (answer.clock_ns != 0) return on_clock(host, answer.clock_ns);
    if (answer.host_check) report.host_check = std::move(answer.host_check);
    if (!answer.endpoints.empty()) state.endpoints = std::move(answer.endpoints);
    if (!answer.failure.empty()) report.listen_failure = answer.failure;
    if (!answer.reaches.empty()) report.reaches = reaches_by_host(targets_of(host), answer.reaches);
    answered(host);
  }

  /// The quickest of a few readings tells most.
  void on_clock(std::uint32_t host, std::int64_t theirs) {
    State& state = states_[host];
    const std::int64_t now = clock_now(), round_trip = now - state.asked_ns;
    if (round_trip < state.best_round_trip) {
      state.best_round_trip = round_trip;
      reports_[host].clock_offset_ns = theirs - (state.asked_ns + round_trip / 2);
      reports_[host].clock_error_ns = round_trip / 2;
    }
    if (++state.readings < kClockReadings) return ask(host, ask_clock());
    Questions questions{.directory = settings_.spec.directory,
                        .marker = marker_.name(),
                        .master = settings_.spec.master,
                        .secret = settings_.spec.secret};
    for (const std::size_t other : neighbours_of(host)) questions.names.push_back(reports_[other].name);
    ask(host, ask_host_check(questions));
  }

  void lose(std::uint32_t host, const std::string& failure, const std::string& hint) {
    states_[host].there = false;
    reports_[host].login_failure = failure;
    reports_[host].login_hint = hint;
    answered(host);
  }

  void answered(std::uint32_t host) {
    if (std::exchange(states_[host].answered, true) || --left_ > 0) return;
    deadline_.cancel();
    asio::post(loop_, [this] { std::exchange(next_, nullptr)(); });
  }

  /// Those who are there and say nothing more are given up.
  void await_answers() {
    deadline_.expires_after(kAnswerTime);
    deadline_.async_wait([this](const error_code& error) {
      if (error) return;
      for (std::uint32_t host = 0; host < states_.size(); ++host)
        if (states_[host].there && !states_[host].answered)
          lose(host, "its doctor does not answer", "look at that host: is it overloaded?");
    });
  }

  template <class Ask>
  void ask_all(Ask ask_one, std::function<void()> next) {
    next_ = std::move(next);
    left_ = 0;
    for (State& state : states_) {
      state.answered = !state.there;
      if (state.there) ++left_;
    }
    if (left_ == 0) return asio::post(loop_, [this] { std::exchange(next_, nullptr)(); });
    await_answers();
    for (std::uint32_t host = 0; host < states_.size(); ++host)
      if (states_[host].there) ask_one(host);
  }

  void ask_to_listen_all() {
    const std::string key = hex(random_bytes(kDigestBytes));
    for (std::size_t i = 0; i < reports_.size(); ++i)
      if (reports_[i].host_check) reports_[i].address = address_of(i);
    ask_all(
        [&](std::uint32_t host) {
          ask(host, ask_to_listen(reports_[host].address, key, settings_.spec.ports));
        },
        [this] { ask_to_dial_all(); });
  }

  void ask_to_dial_all() {
    ask_all([this](std::uint32_t host) { ask(host, ask_to_dial(targets_of(host))); }, [this] { close(); });
  }

  /// Those that it dials and looks up.
  std::vector<std::size_t> neighbours_of(std::size_t host) const {
    std::vector<std::size_t> neighbours;
    for (std::size_t step = 1; step < reports_.size() && step <= kNeighbours; ++step)
      neighbours.push_back((host + step) % reports_.size());
    return neighbours;
  }

  std::vector<Target> targets_of(std::size_t host) const {
    std::vector<Target> targets;
    for (const std::size_t other : neighbours_of(host)) {
      for (const Endpoint& endpoint : states_[other].endpoints)
        targets.push_back({static_cast<std::uint32_t>(other), endpoint});
    }
    return targets;
  }

  /// Where the others dial it: the address at which ssh reached it, or what its name says here.
  std::string address_of(std::size_t host) const {
    const std::vector<std::string> words = split(states_[host].connection, ' ');
    if (words.size() == 4) return words[2];
    const std::string& name = reports_[host].name;
    if (const auto digits = numeric_address({name, 0})) return name;
    if (is_here(host)) {
      for (std::size_t other = 0; other < reports_.size(); ++other) {
        if (other == host || is_here(other)) continue;
        if (const auto address = remote::address_towards(reports_[other].name)) return *address;
      }
    }
    const FoundAddresses found = look_up_now({name, 0});
    if (!found.addresses.empty()) return to_endpoint(found.addresses.front()).host;
    const auto& addresses = reports_[host].host_check->addresses;
    return addresses.empty() ? "127.0.0.1" : addresses.front();
  }

  void close() {
    closing_ = true;
    for (State& state : states_) state.there = false;
    fan_out_->close();
    if (fan_out_->alive() == 0) return loop_.stop();
    deadline_.expires_after(std::chrono::seconds(3));
    deadline_.async_wait([this](const error_code& error) {
      if (error) return;
      fan_out_->kill();
      loop_.stop();
    });
  }

  const SurveySettings& settings_;
  remote::OwnHost own_;
  Marker marker_;
  asio::io_context loop_{1};
  asio::steady_timer deadline_;
  std::vector<HostReport> reports_;
  std::vector<State> states_;
  std::size_t left_ = 0;  // hosts that have not answered in this stage
  std::function<void()> next_;
  bool closing_ = false;
  std::unique_ptr<remote::FanOut> fan_out_;
};

}  // namespace

std::vector<HostReport> survey(const SurveySettings& settings) {
  return Survey(settings).run();
}

HostReport survey_here(const Spec& spec, const Environ& environment) {
  HostReport report;
  report.host_check = make_host_check(
      {.names = {}, .directory = spec.directory, .marker = {}, .master = spec.master, .secret = spec.secret},
      environment);
  report.name = report.host_check->host_name;
  return report;
}

}  // namespace fleetrun::launcher::doctor
