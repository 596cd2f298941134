#include "launcher/etcd/etcd_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <random>
#include <utility>

#include "launcher/etcd/http_exchange.h"
#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxLogins = 3;  // that one question makes
constexpr std::size_t kLongestLine = 4 * 1024 * 1024;

class Client;

/// A question until its answer.
class Question final : public EtcdActivity {
 public:
  Question(Client& client, EtcdRequest request, milliseconds patience,
           std::function<void(const EtcdReply&)> done);
  void attempt();

 private:
  void send(const EtcdRequest& request, bool is_login);
  void on_end(int status, const std::string& trouble, bool is_login);
  void on_login(const std::optional<EtcdFailure>& failure);
  void on_failure(const EtcdFailure& failure);
  void again(const EtcdFailure& failure);
  void finish(EtcdReply reply);

  Client& client_;
  EtcdRequest request_;
  steady_clock::time_point deadline_;
  std::function<void(const EtcdReply&)> done_;
  asio::steady_timer pause_;
  std::unique_ptr<HttpExchange> exchange_;
  std::string body_, token_;
  std::size_t member_ = 0, failures_ = 0;
  int logins_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // with the handlers of pause_
};

/// A stream until its end.
class Stream final : public EtcdActivity {
 public:
  Stream(Client& client, EtcdRequest request, std::function<void(std::string_view)> on_line,
         std::function<void(const EtcdFailure&)> on_end);
  void begin();

 private:
  void on_body(int status, std::string_view piece);
  void on_end(int status, const std::string& trouble);

  Client& client_;
  EtcdRequest request_;
  std::function<void(std::string_view)> on_line_;
  std::function<void(const EtcdFailure&)> on_end_;
  std::unique_ptr<HttpExchange> exchange_;
  std::string rest_, token_;
  std::size_t member_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // with the calls of on_line_ under way
};

class Client final : public EtcdClient {
 public:
  Client(asio::io_context& loop, EtcdAddress address, EtcdTimes times)
      : loop_(loop), address_(std::move(address)), shown_(to_string(address_)), times_(times) {
    std::shuffle(address_.endpoints.begin(), address_.endpoints.end(), random_);
  }

  std::unique_ptr<EtcdActivity> ask(EtcdRequest request, milliseconds patience,
                                    std::function<void(const EtcdReply&)> done) override {
    auto question = std::make_unique<Question>(*this, std::move(request), patience, std::move(done));
    question->attempt();
    return question;
  }

  std::unique_ptr<EtcdActivity> listen(EtcdRequest request, std::function<void(std::string_view)> on_line,
                                       std::function<void(const EtcdFailure&)> on_end) override {
    auto stream = std::make_unique<Stream>(*this, std::move(request), std::move(on_line), std::move(on_end));
    stream->begin();
    return stream;
  }

  void turn_away() noexcept override { turn_away_from(member_); }
  const std::string& shown() const noexcept override { return shown_; }

  /// Others may have turned away meanwhile.
  void turn_away_from(std::size_t member) noexcept {
    if (member == member_) member_ = (member_ + 1) % address_.endpoints.size();
  }
  std::size_t member() const noexcept { return member_; }
  std::string name_of(std::size_t member) const { return to_string(address_.endpoints[member]); }
  std::size_t members() const noexcept { return address_.endpoints.size(); }
  const EtcdTimes& times() const noexcept { return times_; }
  asio::io_context& loop() noexcept { return loop_; }

  bool needs_login() const noexcept { return !address_.user.empty() && token_.empty() && !open_; }
  bool has_login() const noexcept { return !address_.user.empty(); }
  EtcdRequest login_request() const { return log_in(address_.user, address_.password); }
  const std::string& token() const noexcept { return token_; }
  void set_token(std::string token) { token_ = std::move(token); }
  void forget_token(const std::string& token) {
    if (token == token_) token_.clear();
    open_ = false;
  }
  /// etcd has no logins switched on.
  void set_open() noexcept { open_ = true; }

  std::unique_ptr<HttpExchange> exchange(std::size_t member, const EtcdRequest& request, bool with_token,
                                         HttpKind kind, milliseconds patience, HttpListener listener) {
    return start_exchange(loop_,
                          {.to = address_.endpoints[member],
                           .path = request.path,
                           .body = request.body,
                           .authorization = with_token ? token_ : std::string()},
                          kind, patience, std::move(listener));
  }

  /// Random, so that many launchers do not ask at the same instants.
  milliseconds pause(std::size_t failures) {
    const auto max =
        std::min(times_.max_pause, times_.min_pause * (1 << std::min<std::size_t>(failures, 10)));
    return milliseconds(
        std::uniform_int_distribution<milliseconds::rep>(max.count() / 2, max.count())(random_));
  }

 private:
  asio::io_context& loop_;
  EtcdAddress address_;
  std::string shown_;
  EtcdTimes times_;
  std::mt19937 random_{random_number<std::uint32_t>()};
  std::size_t member_ = 0;
  std::string token_;
  bool open_ = false;
};

Question::Question(Client& client, EtcdRequest request, milliseconds patience,
                   std::function<void(const EtcdReply&)> done)
    : client_(client),
      request_(std::move(request)),
      deadline_(steady_clock::now() + patience),
      done_(std::move(done)),
      pause_(client.loop()) {}

void Question::attempt() {
  const bool is_login = client_.needs_login();
  send(is_login ? client_.login_request() : request_, is_login);
}

void Question::send(const EtcdRequest& request, bool is_login) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now());
  body_.clear();
  member_ = client_.member();
  token_ = client_.token();
  exchange_ = client_.exchange(
      member_, request, !is_login, HttpKind::whole,
      std::clamp(left, milliseconds(1), client_.times().attempt),
      {.on_body = [this](int, std::string_view piece) { body_.append(piece); },
       .on_end = [this, is_login](int status,
                                  const std::string& trouble) { on_end(status, trouble, is_login); }});
}

void Question::on_end(int status, const std::string& trouble, bool is_login) {
  if (!trouble.empty())
    return again({EtcdFailure::Kind::unavailable, client_.name_of(member_) + ": " + trouble});
  const auto failure = failure_in(status, body_);
  if (is_login) return on_login(failure);
  if (!failure) return finish({.failure = std::nullopt, .body = std::move(body_)});
  on_failure(*failure);
}

void Question::on_login(const std::optional<EtcdFailure>& failure) {
  if (failure && failure->text.find("authentication is not enabled") != std::string::npos) {
    client_.set_open();
    return attempt();
  }
  if (failure) return on_failure(*failure);
  try {
    client_.set_token(token_in(body_));
  } catch (const Error& error) {
    return again({EtcdFailure::Kind::unavailable, client_.name_of(member_) + ": " + error.what()});
  }
  attempt();
}

void Question::on_failure(const EtcdFailure& failure) {
  if (failure.kind == EtcdFailure::Kind::login && client_.has_login() && logins_ < kMaxLogins) {
    ++logins_;
    client_.forget_token(token_);
    return attempt();
  }
  if (failure.kind == EtcdFailure::Kind::unavailable)
    return again({failure.kind, client_.name_of(member_) + ": " + failure.text});
  finish({.failure = failure, .body = {}});
}

void Question::again(const EtcdFailure& failure) {
  exchange_.reset();
  client_.turn_away_from(member_);
  ++failures_;
  const bool next_at_once = failures_ % client_.members() != 0;
  const auto pause = next_at_once ? milliseconds(0) : client_.pause(failures_ / client_.members());
  if (steady_clock::now() + pause >= deadline_) {
    pause_.expires_at(deadline_);
    return pause_.async_wait([this, failure, alive = std::weak_ptr(alive_)](const error_code& error) {
      if (!error && !alive.expired()) finish({.failure = failure, .body = {}});
    });
  }
  pause_.expires_after(pause);
  pause_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
    if (!error && !alive.expired()) attempt();
  });
}

void Question::finish(EtcdReply reply) {
  exchange_.reset();
  const auto done = std::move(done_);
  done(reply);  // may end this question
}

Stream::Stream(Client& client, EtcdRequest request, std::function<void(std::string_view)> on_line,
               std::function<void(const EtcdFailure&)> on_end)
    : client_(client),
      request_(std::move(request)),
      on_line_(std::move(on_line)),
      on_end_(std::move(on_end)) {}

void Stream::begin() {
  member_ = client_.member();
  token_ = client_.token();
  exchange_ = client_.exchange(
      member_, request_, true, HttpKind::stream, client_.times().attempt,
      {.on_body = [this](int status, std::string_view piece) { on_body(status, piece); },
       .on_end = [this](int status, const std::string& trouble) { on_end(status, trouble); }});
}

void Stream::on_body(int status, std::string_view piece) {
  rest_.append(piece);
  if (status != 200) return;
  if (rest_.size() > kLongestLine) return on_end(0, "a line of its answer is too long");
  const std::weak_ptr alive(alive_);
  const auto on_line = on_line_;  // which may end this stream
  for (std::size_t end; (end = rest_.find('\n')) != rest_.npos;) {
    const std::string line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    if (!line.empty()) on_line(line);
    if (alive.expired()) return;
  }
}

void Stream::on_end(int status, const std::string& trouble) {
  EtcdFailure failure{EtcdFailure::Kind::unavailable, client_.name_of(member_) + ": " + trouble};
  if (trouble.empty())
    failure = failure_in(status, rest_)
                  .value_or(EtcdFailure{EtcdFailure::Kind::unavailable,
                                        client_.name_of(member_) + ": it has ended the stream"});
  if (failure.kind == EtcdFailure::Kind::unavailable) client_.turn_away_from(member_);
  if (failure.kind == EtcdFailure::Kind::login) client_.forget_token(token_);
  exchange_.reset();
  const auto done = std::move(on_end_);
  done(failure);  // may end this stream
}

}  // namespace

std::unique_ptr<EtcdClient> make_etcd_client(asio::io_context& loop, EtcdAddress address, EtcdTimes times) {
  return std::make_unique<Client>(loop, std::move(address), times);
}

}  // namespace fleetrun::launcher
