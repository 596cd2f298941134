#include "launcher/remote/fan_out.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "launcher/remote/link.h"
#include "launcher/remote/shipment.h"
#include "launcher/remote/srun_fan_out.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher::remote {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class Fan;

/// One host, from its first login to the end of its agent.
class Login final : public LinkListener {
 public:
  Login(Fan& fan, asio::io_context& loop, Destination destination)
      : fan_(fan), timer_(loop), destination_(std::move(destination)) {}

  void start();
  void on_frame(Addressed frame) override;
  void on_wish() override;
  void on_room() override;
  void on_closed(int exit_status, const std::string& said, const std::string& garbled) override;

  std::uint32_t number() const noexcept { return destination_.number; }
  Link* link() const noexcept { return link_.get(); }
  bool waits() const noexcept { return state_ == State::waiting; }
  /// No other try; who has an agent asks it to end, who has none does not wait for one.
  void give_up() {
    timer_.cancel();
    if (!link_) return;
    if (state_ == State::joined)
      link_->close_input();
    else
      link_->kill();
  }

 private:
  enum class State { waiting, connecting, shipping, joined, over };

  void refuse(const LoginFailure& failure);
  void on_hello(const Message& message);
  void on_shipping(const Message& message);
  /// Sends on; where that cannot be, the login is over.
  template <class Send>
  void ship(Send send);
  void watch_moving();
  void leave_window();
  void on_silence();
  void try_again(const LoginFailure& failure);

  Fan& fan_;
  asio::steady_timer timer_;
  Destination destination_;
  std::unique_ptr<Link> link_;
  State state_ = State::waiting;
  int tries_ = 0;
  bool in_window_ = false;
  Hello hello_;
  std::optional<Shipment> shipment_;
  LoginFailure verdict_;  // that the end of the command is only the consequence of
};

class Fan final : public FanOut {
 public:
  Fan(asio::io_context& loop, FanOutSettings settings, FanOutListener& listener)
      : loop_(loop),
        settings_(std::move(settings)),
        command_(settings_.cargo ? ship::start_script(settings_.cargo->root, launcher_of(*settings_.cargo),
                                                      settings_.words)
                                 : remote_command(settings_.program, settings_.words)),
        random_(settings_.seed),
        listener_(listener) {}

  void start(std::vector<Destination> destinations) override {
    const auto remote = std::stable_partition(destinations.begin(), destinations.end(),
                                              [](const Destination& one) { return one.here; });
    std::vector<Destination> others(remote, destinations.end());
    destinations.erase(remote, destinations.end());
    std::size_t next = 0;
    for (const Slice& slice : plan_tree(others.size(), settings_.tree_above, settings_.slice)) {
      const std::uint32_t relay = others[slice.relay].number;
      for (std::size_t i = slice.begin; i < slice.end; ++i) routed_[others[i].number] = {relay, others[i]};
      destinations.push_back(others[slice.relay]);
      next = slice.end;
    }
    destinations.insert(destinations.end(), others.begin() + static_cast<std::ptrdiff_t>(next), others.end());
    for (Destination& one : destinations) log_in(std::move(one));
    asio::post(loop_, [this] { start_some(); });
  }

  void send(std::uint32_t host, Message message) override {
    if (const auto routed = routed_.find(host); routed != routed_.end() && routed->second.joined)
      return send_to(routed->second.relay, {host, std::move(message)});
    send_to(host, {host, std::move(message)});
  }

  void close() override {
    closing_ = true;
    waiting_.clear();
    for (auto& [number, login] : logins_) {
      login->give_up();
    }
  }

  void kill() override {
    close();
    for (auto& [number, login] : logins_) {
      if (login->link()) login->link()->kill();
    }
  }

  void set_reading(bool reading) override {
    for (auto& [number, login] : logins_) {
      if (login->link()) login->link()->set_reading(reading);
    }
  }

  std::size_t alive() const override {
    return static_cast<std::size_t>(std::count_if(
        logins_.begin(), logins_.end(), [](const auto& entry) { return entry.second->link() != nullptr; }));
  }

  std::optional<std::uint32_t> via(std::uint32_t host) const override {
    const auto routed = routed_.find(host);
    if (routed == routed_.end()) return std::nullopt;
    return routed->second.relay;
  }

  // For Login.

  CommandLine command_for(const Destination& destination, bool tried_before) const {
    CommandLine line;
    line.environment = settings_.environment;
    if (!destination.here) {
      line.argv =
          ssh_argv(settings_.ssh, destination.host, command_, settings_.connect_timeout, tried_before);
      line.killed_with_children = true;
      return line;
    }
    line.argv = split(settings_.words, ' ');
    line.argv.insert(line.argv.begin(), settings_.own_program);
    return line;
  }

  void under_way(int change) {
    under_way_ += change;
    if (change < 0) asio::post(loop_, [this] { start_some(); });
  }

  void wait_again(Login& login) {
    if (closing_) return;
    waiting_.push_back(&login);
    start_some();
  }

  /// It has said hello.
  void joined(std::uint32_t host, const Hello& hello) {
    Start start;
    for (const auto& [number, routed] : routed_) {
      if (routed.relay != host || routed.joined) continue;
      start.numbers.push_back(number);
      start.hosts.push_back(routed.destination.host);
    }
    start.ssh = settings_.ssh;
    start.program = settings_.program;
    start.window = settings_.window;
    start.ships = settings_.cargo != nullptr;
    if (start.ships) start.ship_root = settings_.cargo->root;
    if (!start.hosts.empty()) send_to(host, {host, std::move(start)});
    listener_.on_joined(host, hello);
  }

  /// Nothing comes through it any more.
  void lost_relay(std::uint32_t relay, const std::string& name) {
    std::vector<std::uint32_t> gone;
    for (auto& [number, routed] : routed_) {
      if (routed.relay == relay) gone.push_back(number);
    }
    for (const std::uint32_t number : gone) {
      const Routed routed = std::move(routed_.extract(number).mapped());
      if (routed.joined)
        listener_.on_gone(number, "it was reached through " + name + ", whose agent is gone");
      else if (!closing_)
        log_in(routed.destination);
    }
    start_some();
  }

  /// From the agent of another host, which passes it on.
  void passed_on(std::uint32_t host, Message message) {
    const auto found = routed_.find(host);
    if (found == routed_.end()) return;
    if (const auto* hello = std::get_if<Hello>(&message); hello && !found->second.joined) {
      found->second.joined = true;
      return listener_.on_joined(host, *hello);
    }
    if (std::holds_alternative<Verdict>(message) && !found->second.joined) {
      const Destination destination = std::move(routed_.extract(found).mapped().destination);
      if (closing_) return;
      log_in(destination);
      return start_some();
    }
    if (const auto* progress = std::get_if<Progress>(&message)) return listener_.on_progress(host, *progress);
    if (const auto* gone = std::get_if<Gone>(&message)) {
      const std::string why = gone->why;
      routed_.erase(found);
      return listener_.on_gone(host, why);
    }
    if (found->second.joined) listener_.on_message(host, std::move(message));
  }

  /// A server has said that it is busy, or let in whom it had hung up on.
  void note_busy() noexcept { busy_ = true; }
  int tries_for(Again again) const noexcept {
    if (again == Again::no) return 0;
    return again == Again::yes || busy_ ? settings_.tries
                                        : std::min(settings_.tries, settings_.tries_in_doubt);
  }
  /// Where there is a cargo, the program that is here has no place there.
  std::string program_there() const { return settings_.cargo ? "" : settings_.program; }

  std::chrono::milliseconds pause(int tries) { return login_pause(settings_, tries, random_()); }
  const FanOutSettings& settings() const noexcept { return settings_; }
  FanOutListener& listener() noexcept { return listener_; }
  bool closing() const noexcept { return closing_; }

 private:
  /// A host whose agent is started by that of another one.
  struct Routed {
    std::uint32_t relay = 0;
    Destination destination;
    bool joined = false;
  };

  void log_in(Destination destination) {
    const std::uint32_t number = destination.number;
    auto login = std::make_unique<Login>(*this, loop_, std::move(destination));
    waiting_.push_back(login.get());
    logins_[number] = std::move(login);
  }

  void send_to(std::uint32_t link, Addressed frame) {
    const auto login = logins_.find(link);
    if (login != logins_.end() && login->second->link()) login->second->link()->send(frame);
  }

  void start_some() {
    while (!waiting_.empty() && under_way_ < settings_.window) {
      Login* login = waiting_.front();
      waiting_.pop_front();
      login->start();
    }
  }

  asio::io_context& loop_;
  const FanOutSettings settings_;
  const std::string command_;
  std::mt19937_64 random_;
  FanOutListener& listener_;
  std::map<std::uint32_t, std::unique_ptr<Login>> logins_;
  std::map<std::uint32_t, Routed> routed_;
  std::deque<Login*> waiting_;
  int under_way_ = 0;
  bool closing_ = false, busy_ = false;
};

void Login::leave_window() {
  if (std::exchange(in_window_, false)) fan_.under_way(-1);
}

void Login::start() {
  state_ = State::connecting;
  ++tries_;
  in_window_ = true;
  fan_.under_way(1);
  shipment_.reset();
  try {
    link_ = start_link(static_cast<asio::io_context&>(timer_.get_executor().context()),
                       fan_.command_for(destination_, tries_ > 1), *this);
  } catch (const Error& error) {
    refuse({error.what(), error.hint()});
    return;
  }
  timer_.expires_after(fan_.settings().hello_timeout);
  timer_.async_wait([this](const error_code& error) {
    if (!error) on_silence();
  });
}

void Login::on_silence() {
  if (state_ != State::connecting && state_ != State::shipping) return;
  if (shipment_) {
    verdict_ = {
        "its files do not move any more: " + std::to_string(shipment_->progress().sent) + " bytes were sent",
        "is it up, and reachable from here?"};
    return link_->kill();
  }
  const auto seconds = std::chrono::duration<double>(fan_.settings().hello_timeout).count();
  char text[32];
  std::snprintf(text, sizeof text, "%g", seconds);
  verdict_ = {"no word from fleetrun there within " + std::string(text) + " s of the login",
              "does its shell wait for input at the start? `ssh -o BatchMode=yes HOST true` shows it"};
  link_->kill();
}

void Login::on_frame(Addressed frame) {
  if (state_ == State::connecting) return on_hello(frame.message);
  if (state_ == State::shipping) return on_shipping(frame.message);
  if (state_ != State::joined) return;
  if (frame.host != number()) return fan_.passed_on(frame.host, std::move(frame.message));
  fan_.listener().on_message(frame.host, std::move(frame.message));
}

void Login::on_hello(const Message& message) {
  const auto* hello = std::get_if<Hello>(&message);
  if (!hello || hello->protocol != kProtocol || hello->version != FLEETRUN_VERSION) {
    verdict_ = {"fleetrun there is " + (hello ? printable(hello->version, 40) : "of an unknown version") +
                    ", and " FLEETRUN_VERSION " here",
                "install the same version on all hosts, or name it with --path"};
    link_->kill();
    return;
  }
  leave_window();
  if (tries_ > 1) fan_.note_busy();
  if (fan_.settings().cargo && !destination_.here) {
    state_ = State::shipping;
    hello_ = *hello;
    return ship([&] { shipment_->offer(*link_); });
  }
  state_ = State::joined;
  timer_.cancel();
  fan_.joined(number(), *hello);
}

template <class Send>
void Login::ship(Send send) {
  if (!shipment_) shipment_.emplace(fan_.settings().cargo, number());
  try {
    send();
    watch_moving();
  } catch (const Error& error) {
    verdict_ = {error.what(), error.hint()};
    link_->kill();
  }
}

void Login::watch_moving() {
  timer_.expires_after(fan_.settings().ship_timeout);
  timer_.async_wait([this](const error_code& error) {
    if (!error) on_silence();
  });
  fan_.listener().on_progress(number(), shipment_->progress());
}

void Login::on_wish() {
  if (state_ != State::connecting || !fan_.settings().cargo || shipment_) return;
  ship([&] { shipment_->begin_launcher(*link_); });
}

void Login::on_room() {
  if (!shipment_ || (state_ != State::connecting && state_ != State::shipping)) return;
  ship([&] { shipment_->go_on(*link_); });
}

void Login::on_shipping(const Message& message) {
  if (const auto* wanted = std::get_if<Wanted>(&message))
    return ship([&] { shipment_->begin_files(*link_, *wanted); });
  const auto* shipped = std::get_if<Shipped>(&message);
  if (!shipped) return;
  if (!shipped->error.empty()) {
    verdict_ = {printable(shipped->error, 1000), printable(shipped->hint, 1000)};
    return link_->kill();
  }
  state_ = State::joined;
  timer_.cancel();
  shipment_.reset();
  fan_.joined(number(), hello_);
}

void Login::on_closed(int exit_status, const std::string& said, const std::string& garbled) {
  const std::unique_ptr<Link> ended = std::move(link_);
  timer_.cancel();
  if (state_ == State::joined) {
    state_ = State::over;
    std::string why = garbled;
    if (why.empty() && exit_status != 0)
      why = destination_.here ? "its agent ended with " + std::to_string(exit_status)
                              : explain_login(exit_status, said, fan_.program_there()).reason;
    fan_.listener().on_gone(number(), why);
    return fan_.lost_relay(number(), written(destination_.host));
  }
  LoginFailure failure = verdict_;
  if (failure.reason.empty() && !garbled.empty()) failure = {garbled, ""};
  if (failure.reason.empty() && fan_.settings().cargo &&
      (exit_status == ship::kNoPlace || exit_status == ship::kDoesNotRun)) {
    const ship::StartFailure start = ship::explain_start(exit_status, said, last_line(said));
    failure = {start.reason, start.hint};
  }
  if (failure.reason.empty()) failure = explain_login(exit_status, said, fan_.program_there());
  if (failure.again == Again::yes) fan_.note_busy();
  if (tries_ < fan_.tries_for(failure.again) && !fan_.closing()) return try_again(failure);
  refuse(failure);
}

void Login::try_again(const LoginFailure& failure) {
  state_ = State::waiting;
  leave_window();
  fan_.listener().on_again(number(), failure, tries_);
  timer_.expires_after(fan_.pause(tries_));
  timer_.async_wait([this](const error_code& error) {
    if (!error) fan_.wait_again(*this);
  });
}

void Login::refuse(const LoginFailure& failure) {
  state_ = State::over;
  leave_window();
  asio::post(timer_.get_executor(), [this, failure] {
    fan_.listener().on_refused(number(), failure, tries_);
    fan_.lost_relay(number(), written(destination_.host));
  });
}

}  // namespace

std::unique_ptr<FanOut> make_fan_out(asio::io_context& loop, FanOutSettings settings,
                                     FanOutListener& listener) {
  if (!settings.srun.empty()) return make_srun_fan_out(loop, std::move(settings), listener);
  return std::make_unique<Fan>(loop, std::move(settings), listener);
}

std::vector<Slice> plan_tree(std::size_t hosts, std::size_t above, std::size_t slice) {
  std::vector<Slice> slices;
  if (hosts <= above) return slices;
  for (std::size_t relay = 0; relay < hosts; relay += slice + 1)
    slices.push_back({relay, relay + 1, std::min(relay + 1 + slice, hosts)});
  return slices;
}

std::chrono::milliseconds login_pause(const FanOutSettings& settings, int tries,
                                      std::uint64_t random) noexcept {
  const std::int64_t doubled = settings.first_pause.count() << std::min(tries - 1, 16);
  const std::int64_t max = std::min<std::int64_t>(doubled, settings.longest_pause.count());
  return std::chrono::milliseconds(
      max - static_cast<std::int64_t>(random % static_cast<std::uint64_t>(max / 2 + 1)));
}

}  // namespace fleetrun::launcher::remote
