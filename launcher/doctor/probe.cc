#include "launcher/doctor/probe.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <nlohmann/json.hpp>

#include "launcher/doctor/make_host_check.h"
#include "launcher/doctor/reach.h"
#include "launcher/remote/agent_channel.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/port_range.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher::doctor {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using nlohmann::json;

constexpr std::size_t kLongestQuestion = 16 << 20;
constexpr std::chrono::seconds kDialTime{3};

std::int64_t clock_now() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class Probe {
 public:
  explicit Probe(const Environ& environment)
      : environment_(environment), decoder_(kLongestQuestion, false), input_(loop_, ::dup(STDIN_FILENO)) {}

  int run() {
    write(std::string(remote::kMarker));
    remote::Hello hello;
    hello.version = FLEETRUN_VERSION;
    hello.connection = environment_.value_or("SSH_CONNECTION", "");
    say(hello);
    read();
    loop_.run();
    return 0;
  }

 private:
  void read() {
    input_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      char bytes[64 << 10];
      const ssize_t size = error ? 0 : ::read(input_.native_handle(), bytes, sizeof bytes);
      if (size < 0 && errno == EINTR) return read();
      if (size <= 0) return loop_.stop();
      decoder_.append({bytes, static_cast<std::size_t>(size)});
      try {
        while (const auto frame = decoder_.next()) {
          host_ = frame->host;
          if (const auto* order = std::get_if<remote::Order>(&frame->message)) on_question(order->bytes);
        }
      } catch (const Error&) {
        return loop_.stop();  // what came are not frames
      }
      read();
    });
  }

  void on_question(const std::string& text) {
    const json question = read_json<json>(text);
    const std::string ask = question.is_object() ? question.value("ask", "") : "";
    try {
      if (ask == "clock") return answer({{"clock", clock_now()}});
      if (ask == "examine") {
        const HostCheck host_check =
            make_host_check(questions_from_json(json_text(question.at("questions"))), environment_);
        return answer({{"condition", parse_json<json>(to_json(host_check))}});
      }
      if (ask == "listen") return listen(question);
      if (ask == "dial") return dial(question.at("targets"));
      answer({{"failure", "it does not understand the question " + ask}});
    } catch (const Error& error) {
      answer({{"failure", error.what()}});
    } catch (const json::exception&) {
      answer({{"failure", "it does not understand the question " + ask}});
    }
  }

  void listen(const json& question) {
    key_ = question.at("key").get<std::string>();
    listener_ = listen_for_doctors(loop_, question.at("host"), key_,
                                   parse_ports(question.at("ports").get<std::string>(), ':'));
    answer({{"endpoints", to_string(std::span<const Endpoint>(listener_->endpoints()))}});
  }

  void dial(const json& list) {
    std::vector<Target> targets;
    for (const json& entry : list)
      targets.push_back({entry.at(0), parse_endpoint(entry.at(1).get<std::string>())});
    dialing_ =
        dial_all(loop_, std::move(targets), key_, kDialTime, [this](const std::vector<Reach>& reaches) {
          json answers = json::array();
          for (const Reach& reach : reaches) answers.push_back({reach.host, reach.failure, reach.micros});
          answer({{"reaches", answers}});
        });
  }

  void answer(const json& value) { say(remote::Output{json_text(value)}); }
  void say(const remote::Message& message) { write(remote::encode({host_, message})); }

  /// The other end reads all the time, so waiting for it is short.
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return loop_.stop();
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  const Environ& environment_;
  asio::io_context loop_{1};
  remote::ChannelDecoder decoder_;
  asio::posix::stream_descriptor input_;
  std::uint32_t host_ = 0;
  std::string key_;
  std::unique_ptr<ReachListener> listener_;
  std::unique_ptr<Dialing> dialing_;
};

}  // namespace

int run_probe(const Environ& environment) {
  return Probe(environment).run();
}

std::string ask_clock() {
  return R"({"ask":"clock"})";
}

std::string ask_host_check(const Questions& questions) {
  return json_text<json>({{"ask", "examine"}, {"questions", parse_json<json>(to_json(questions))}});
}

std::string ask_to_listen(const std::string& host, const std::string& key, const std::string& ports) {
  return json_text<json>({{"ask", "listen"}, {"host", host}, {"key", key}, {"ports", ports}});
}

std::string ask_to_dial(const std::vector<Target>& targets) {
  json list = json::array();
  for (const Target& target : targets) list.push_back({target.host, to_string(target.endpoint)});
  return json_text<json>({{"ask", "dial"}, {"targets", list}});
}

Answer answer_from_json(std::string_view text) {
  Answer answer;
  try {
    const json value = parse_json<json>(text).get<json::object_t>();
    if (value.contains("clock")) value.at("clock").get_to(answer.clock_ns);
    if (value.contains("condition")) answer.host_check = host_check_from_json(json_text(value["condition"]));
    if (value.contains("endpoints"))
      answer.endpoints = parse_endpoint_list(value.at("endpoints").get<std::string>());
    if (value.contains("failure")) answer.failure = printable(value.at("failure").get<std::string>());
    if (value.contains("reaches"))
      for (const json& entry : value.at("reaches"))
        answer.reaches.push_back({entry.at(0), printable(entry.at(1).get<std::string>()), entry.at(2)});
  } catch (const json::exception&) {
    throw Error(ErrorKind::data, "malformed report from a host's doctor",
                "install the same version on every host");
  }
  return answer;
}

}  // namespace fleetrun::launcher::doctor
