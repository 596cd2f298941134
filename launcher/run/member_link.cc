#include "launcher/run/member_link.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "launcher/plan/plan_spares.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;
using boost::system::error_code;

constexpr std::size_t kLongestMemberLine = 4096;

/// The line to one life of a process. Owned by its part, and by what waits for its socket.
class MemberLine : public std::enable_shared_from_this<MemberLine> {
 public:
  using Hear = std::function<void(std::string_view)>;

  MemberLine(asio::io_context& loop, UniqueFd ours, UniqueFd theirs, Hear hear)
      : socket_(loop, asio::local::stream_protocol(), ours.release()),
        theirs_(std::move(theirs)),
        hear_(std::move(hear)) {}

  int theirs() const noexcept { return theirs_.value(); }
  void started() {
    theirs_.reset();
    read();
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
    theirs_.reset();
    hear_ = nullptr;
  }
  /// Hears the lines that are there. False: there will be none.
  bool hear_all() {
    char part[kLongestMemberLine];
    ssize_t size = 0;
    const Hear hear = hear_;  // what it says may close the line
    while (hear_ && (size = ::recv(socket_.native_handle(), part, sizeof part, MSG_DONTWAIT)) > 0) {
      text_.append(part, static_cast<std::size_t>(size));
      for (std::size_t end = 0; hear_ && (end = text_.find('\n')) != text_.npos;) {
        const std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        hear(line);
      }
      if (text_.size() > kLongestMemberLine) return false;
    }
    return hear_ && size < 0 && (errno == EAGAIN || errno == EINTR);
  }
  void tell(const Json& message) {
    waiting_.push_back(json_text(message) + "\n");
    if (waiting_.size() == 1) write();
  }

 private:
  void write() {
    asio::async_write(socket_, asio::buffer(waiting_.front()),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) return;
                        self->waiting_.pop_front();
                        if (!self->waiting_.empty()) self->write();
                      });
  }

  void read() {
    socket_.async_wait(socket_.wait_read, [self = shared_from_this()](const error_code& error) {
      if (!error && self->hear_all()) self->read();
    });
  }

  asio::local::stream_protocol::socket socket_;
  UniqueFd theirs_;
  Hear hear_;
  std::string text_;
  std::deque<std::string> waiting_;
};

class MemberLink final : public JobPart {
 public:
  MemberLink(JobControl& control, PortLeases& leases, std::string host)
      : control_(control), leases_(leases), host_(std::move(host)) {}
  ~MemberLink() override { close(); }

  int open_descriptor(std::string_view variable, std::size_t index) override {
    if (variable != kMemberVariable) return -1;
    close(index);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    if (lines_.size() <= index) lines_.resize(index + 1);
    lines_[index] = std::make_shared<MemberLine>(control_.loop(), UniqueFd(ends[0]), UniqueFd(ends[1]),
                                                 [this, index](std::string_view line) {
                                                   if (const auto said = parse_member_line(line, index))
                                                     control_.heard(*said);
                                                 });
    return lines_[index]->theirs();
  }

  void catch_up() override {
    for (const auto& line : std::vector(lines_)) {
      if (line) line->hear_all();
    }
  }

  void on_event(const JobEvent& event) override {
    std::visit([this](const auto& e) { on(e); }, event);
  }

 private:
  void on(const event::AttemptBegan&) {
    if (generation_ == 0) seats_ = trainers();
  }
  void on(const event::RestartDecided& decided) {
    if (decided.scope != RestartScope::group) return;
    generation_ = 0;
    seats_ = trainers();
  }
  void on(const event::ProcessStarted& started) {
    if (has(started.index)) lines_[started.index]->started();
  }
  void on(const event::ProcessNotStarted& failed) { close(failed.index); }
  void on(const event::ProcessExited& exited) {
    close(exited.index);
    const auto seat = std::find(seats_.begin(), seats_.end(), exited.index);
    if (seat == seats_.end() || exited.asked || exited.reason.ok()) return;
    const Json lost = {{"lost", seat - seats_.begin()}, {"generation", generation_}};
    for (const std::size_t index : seats_)
      if (has(index)) lines_[index]->tell(lost);
  }
  void on(const event::GenerationBegan& began) {
    generation_ = began.generation;
    seats_ = began.seats;
    try {
      if (store_) leases_.give_up(*store_);
      store_ = leases_.lease_free(host_);
      leases_.share(*store_);
    } catch (const Error& error) {
      control_.tell(event::Warning{std::string("the trainers cannot meet again: ") + error.what()});
      return control_.request_stop(false);
    }
    for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
      if (!has(seats_[rank])) continue;
      Json environment = Json::object();
      const Environ own = rank_environment(control_.plan(), rank);
      for (const auto& [name, value] : own.values()) environment[name] = value;
      lines_[seats_[rank]]->tell({{"generation", began.generation},
                                  {"rank", rank},
                                  {"size", seats_.size()},
                                  {"newcomers", began.newcomers},
                                  {"store", to_string(*store_)},
                                  {"environment", std::move(environment)}});
    }
  }
  void on(const event::JobEnded&) { close(); }
  template <class Other>
  void on(const Other&) {}

  std::vector<std::size_t> trainers() const {
    const Plan& plan = control_.plan();
    return processes_of(plan, *plan.roles[*standby_role(plan.roles)].stands_by_for);
  }
  bool has(std::size_t index) const { return index < lines_.size() && lines_[index]; }
  void close(std::size_t index) {
    if (has(index)) std::exchange(lines_[index], nullptr)->close();
  }
  void close() {
    for (std::size_t index = 0; index < lines_.size(); ++index) close(index);
  }

  JobControl& control_;
  PortLeases& leases_;
  const std::string host_;
  std::vector<std::shared_ptr<MemberLine>> lines_;  // by index in the plan
  std::vector<std::size_t> seats_;                  // by rank
  int generation_ = 0;
  std::optional<Endpoint> store_;
};

}  // namespace

std::optional<MemberSaid> parse_member_line(std::string_view line, std::size_t index) {
  const Json said = read_json<Json>(line);
  if (!said.is_object()) return std::nullopt;
  if (said.contains("waits")) return MemberSaid{.index = index, .what = MemberSaid::What::waits};
  if (said.contains("trains")) return MemberSaid{.index = index, .what = MemberSaid::What::trains};
  const auto leaves = said.find("leaves"), step = said.find("step");
  const auto is_number = [&](const auto& found) { return found != said.end() && found->is_number_integer(); };
  if (!is_number(leaves) || !is_number(step)) return std::nullopt;
  return MemberSaid{.index = index,
                    .what = MemberSaid::What::leaves,
                    .generation = leaves->get<int>(),
                    .step = step->get<std::int64_t>()};
}

MakeJobPart member_link(PortLeases& leases, const std::string& host) {
  return [&leases, host](JobControl& control) -> std::unique_ptr<JobPart> {
    if (!standby_role(control.plan().roles)) return nullptr;
    return std::make_unique<MemberLink>(control, leases, host);
  };
}

}  // namespace fleetrun::launcher
