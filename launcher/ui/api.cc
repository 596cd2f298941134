// What may block (a control socket, a program) is asked by a process of its own; the rest is answered here.
#include "launcher/ui/api.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "launcher/logs/log_catalog.h"
#include "launcher/stacks/stack_tool.h"
#include "launcher/status/control_client.h"
#include "launcher/status/event_json.h"
#include "launcher/ui/gate.h"
#include "launcher/ui/log_document.h"
#include "launcher/ui/page.h"
#include "launcher/ui/past_job.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPastJobs = 50, kMostLines = 2000, kLongestText = 1000, kFirstEvent = 16'384,
                      kEventBytes = std::size_t{256} << 10;
constexpr ToolLimits kAsking{std::chrono::seconds(40), std::size_t{32} << 20};
constexpr ToolLimits kPrinting{std::chrono::seconds(20), std::size_t{64} << 20};
constexpr char kTaken = '+', kRefused = '-';  // the first byte of what a process of ours says

UiAnswer json_answer(const Json& json) {
  return {200, "application/json", json_text(json)};
}

/// Runs `work`, which gives what is to be said, and says why not where it throws.
void say_result(int fd, const std::function<std::string()>& work) {
  try {
    write_all(fd, kTaken + work());
  } catch (const Error& error) {
    write_all(fd, kRefused + ui_refusal(409, error.what(), error.hint()).body);
  } catch (const std::exception& error) {
    write_all(fd, kRefused + ui_refusal(409, error.what()).body);
  }
}

std::size_t number_of(const UiRequest& request, std::string_view name, std::size_t otherwise) {
  const auto text = query_value(request.target, name);
  if (!text) return otherwise;
  const auto number = parse_integer(*text);
  if (!number || *number < 0)
    throw Error(ErrorKind::usage,
                std::string(name) + " is '" + printable(*text) + "': a whole number is needed");
  return static_cast<std::size_t>(*number);
}

LogSpec log_spec(const UiRequest& request, const std::string& pod_directory) {
  LogSpec spec;
  spec.pod_directory = pod_directory;
  spec.roles = split(query_value(request.target, "role").value_or(""), ',');
  for (const std::string& rank : split(query_value(request.target, "rank").value_or(""), ',')) {
    const auto number = parse_integer(rank);
    if (!number || *number < 0 || *number > 1'000'000)
      throw Error(ErrorKind::usage, "rank is '" + printable(rank) + "': a rank is needed");
    spec.ranks.push_back(static_cast<int>(*number));
  }
  if (query_value(request.target, "attempt"))
    spec.attempt = static_cast<int>(number_of(request, "attempt", 0));
  return spec;
}

class Api final : public UiApi {
 public:
  Api(boost::asio::io_context& loop, UiSettings settings) : loop_(loop), settings_(std::move(settings)) {}

  bool has_jobs() override {
    look();
    return !jobs_.empty();
  }

  void answer(const UiRequest& request, Respond respond) override {
    const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
    const bool is_post = request.method == "POST";
    if (const PageFile file = page_file(path); !is_post && !file.text.empty())
      return respond({200, file.type, std::string(file.text)});
    const std::vector<std::string> parts = split(path, '/');
    const bool is_api = parts.size() >= 3 && parts[1] == "api" && parts[2] == "jobs";
    if (is_api && parts.size() == 3 && !is_post) return respond(jobs());
    if (!is_api || parts.size() != 5) return respond(ui_refusal(404, "there is no " + printable(path)));
    look();
    const auto job = jobs_.find(parts[3]);
    if (job == jobs_.end()) return respond(ui_refusal(404, "there is no job of pod " + printable(parts[3])));
    try {
      is_post ? act(request, job->second, parts[4], respond) : show(request, job->second, parts[4], respond);
    } catch (const Error& error) {
      respond(ui_refusal(error.kind() == ErrorKind::usage ? 400 : 500, error.what(), error.hint()));
    }
  }

 private:
  struct Job {
    JobEntry entry;
    std::string began;
    bool runs = false;
    std::string directory() const { return entry.log_dir + "/" + entry.pod; }
  };

  bool is_wanted(const JobEntry& entry) const {
    return !settings_.job || *settings_.job == entry.pod || *settings_.job == entry.job_id;
  }

  /// Which jobs run, and which have ended. A job that was seen stays.
  void look() {
    for (auto& [pod, job] : jobs_) job.runs = false;
    for (const JobEntry& entry : list_jobs(settings_.run_directories)) {
      if (is_wanted(entry)) jobs_[entry.pod] = {entry, iso_time(entry.began_at), true};
    }
    std::size_t count = 0;
    for (const std::string& pod : list_pods(settings_.log_dir)) {
      if (++count > kPastJobs) break;
      if (jobs_.contains(pod) || others_.contains(pod)) continue;
      Job job = past_job(pod);
      if (is_wanted(job.entry))
        jobs_[pod] = std::move(job);
      else if (!job.entry.job_id.empty())  // else it has only begun
        others_.insert(pod);
    }
  }

  Job past_job(const std::string& pod) const {
    Job job;
    job.entry.pod = pod;
    job.entry.log_dir = settings_.log_dir;
    off_t begin = 0;
    const auto lines = new_lines(job.directory() + "/events.jsonl", begin, kFirstEvent, true);
    const Json first = lines.empty() ? Json() : read_json<Json>(lines.front());
    if (!first.is_object()) return job;
    job.entry.job_id = first.value("job_id", "");
    job.entry.mode = first.value("mode", "");
    job.began = first.value("time", "");
    return job;
  }

  UiAnswer jobs() {
    look();
    Json list = Json::array();
    for (const auto& [pod, job] : jobs_) {
      list.push_back({{"job_id", job.entry.job_id},
                      {"pod", pod},
                      {"mode", job.entry.mode},
                      {"began", job.began},
                      {"log_dir", job.entry.log_dir},
                      {"running", job.runs}});
    }
    return json_answer(list);
  }

  void show(const UiRequest& request, const Job& job, const std::string& what, const Respond& respond) {
    if (what == "status" && job.runs) return ask(job.entry, R"({"request":"status"})", status_in, respond);
    if (what == "status") return respond(text_or_404(past_status(job.directory()), "events of this job"));
    if (what == "verdict") return respond(text_or_404(verdict_of(job.directory()), "verdict of this job"));
    if (what == "events") return respond(events(request, job));
    if (what == "lines") return respond(lines(request, job));
    if (what == "search") return respond(search(request, job));
    if (what == "follow") return respond(follow(request, job));
    if (what == "servers" && job.runs)
      return print([this, entry = job.entry] { settings_.print_servers(entry); }, respond);
    if (what == "curves")
      return print([this, logs = trainer_logs(job)] { settings_.print_curves(logs); }, respond);
    respond(ui_refusal(404, "there is no " + printable(what) + " of this job"));
  }

  static UiAnswer text_or_404(std::optional<std::string> text, const std::string& what) {
    return text ? UiAnswer{200, "application/json", std::move(*text)}
                : ui_refusal(404, "there is no " + what);
  }

  static UiAnswer events(const UiRequest& request, const Job& job) {
    const std::size_t from = number_of(request, "from", 0);
    auto next = static_cast<off_t>(from);
    std::vector<std::string> events;
    for (std::string& line : new_lines(job.directory() + "/events.jsonl", next, kEventBytes, false)) {
      if (read_json<Json>(line).is_object()) events.push_back(std::move(line));  // else it was cut off
    }
    const bool more = next - static_cast<off_t>(from) > static_cast<off_t>(kEventBytes / 2);
    return {200, "application/json",
            "{\"next\":" + std::to_string(next) + ",\"more\":" + (more ? "true" : "false") + ",\"events\":[" +
                join(events, ",") + "]}"};
  }

  UiAnswer lines(const UiRequest& request, const Job& job) {
    const LogDocument document(log_spec(request, job.directory()), lines_);
    Json parts = Json::array();
    for (const LogPart& part : document.parts())
      parts.push_back({{"role", part.role},
                       {"rank", part.rank},
                       {"attempt", part.attempt},
                       {"first", part.first},
                       {"lines", part.lines}});
    const std::size_t from = number_of(request, "from", 0);
    const std::size_t count = std::min(number_of(request, "count", 0), kMostLines);
    return json_answer({{"total", document.count()},
                        {"whole", document.is_whole()},
                        {"parts", std::move(parts)},
                        {"from", from},
                        {"lines", document.lines(from, count)}});
  }

  UiAnswer search(const UiRequest& request, const Job& job) {
    const std::string text = query_value(request.target, "text").value_or("");
    if (text.empty() || text.size() > kLongestText)
      throw Error(ErrorKind::usage, "what is looked for has 1 to " + std::to_string(kLongestText) + " bytes");
    const LogDocument document(log_spec(request, job.directory()), lines_);
    const auto found =
        document.find(text, number_of(request, "from", 0), query_value(request.target, "back") == "1");
    Json json = Json::object();
    if (found.line) json["line"] = *found.line;
    if (!found.line && found.go_on) json["go_on"] = *found.go_on;
    return json_answer(json);
  }

  static UiAnswer follow(const UiRequest& request, const Job& job) {
    const ArrivedLines arrived =
        arrived_lines(log_spec(request, job.directory()), query_value(request.target, "after").value_or(""));
    Json processes = Json::array();
    for (const auto& [role, rank] : arrived.processes) processes.push_back(role + " " + std::to_string(rank));
    return json_answer(
        {{"cursor", arrived.cursor}, {"processes", std::move(processes)}, {"lines", arrived.lines}});
  }

  /// Of the newest attempt.
  static std::vector<std::string> trainer_logs(const Job& job) {
    LogSpec spec;
    spec.pod_directory = job.directory();
    spec.roles = {"trainer"};
    std::vector<std::string> logs;
    for (const auto& [process, found] : wanted_logs(spec)) {
      for (const std::string& path : found.back().paths) logs.push_back(path);
    }
    return logs;
  }

  void act(const UiRequest& request, const Job& job, const std::string& what, const Respond& respond) {
    if (what != "stop" && what != "restart" && what != "signal")
      return respond(ui_refusal(404, "there is no " + printable(what) + " of a job"));
    if (!job.runs) return respond(ui_refusal(409, "the job has ended"));
    Json json = read_json<Json>(request.body);
    if (!json.is_object()) return respond(ui_refusal(400, "a JSON object is needed"));
    json["request"] = what;
    ask(
        job.entry, json_text(json), [](const std::string&) { return std::string(R"({"ok":true})"); },
        respond);
  }

  void ask(const JobEntry& entry, const std::string& request, std::string (*read)(const std::string&),
           const Respond& respond) {
    run([&](int out) { say_result(out, [&] { return read(ControlClient(entry).ask(request)); }); }, kAsking,
        [](std::string said, const Respond& to) {
          if (said.empty()) return to(ui_refusal(502, "the job does not answer"));
          to({said.front() == kTaken ? 200 : 409, "application/json", said.substr(1)});
        },
        respond);
  }

  /// What a program prints: the lines that are JSON, as an array.
  void print(const std::function<void()>& become, const Respond& respond) {
    run(
        [&](int out) {
          ::dup2(out, STDOUT_FILENO);
          ::dup2(out, STDERR_FILENO);
          say_result(out, [&] {
            become();
            return std::string();
          });
        },
        kPrinting,
        [](const std::string& said, const Respond& to) {
          if (said.starts_with(kRefused)) return to({404, "application/json", said.substr(1)});
          std::vector<std::string> lines;
          for (std::string& line : split(said, '\n')) {
            if (line.starts_with('{')) lines.push_back(std::move(line));
          }
          if (lines.empty()) return to(ui_refusal(404, "printed were no values: " + printable(said)));
          to({200, "application/json", "[" + join(lines, ",") + "]"});
        },
        respond);
  }

  void run(const std::function<void(int)>& work, const ToolLimits& limits,
           std::function<void(std::string, const Respond&)> done, const Respond& respond) {
    const int id = ++last_run_;
    const auto alone = [&](int out) {
      ::dup2(out, STDERR_FILENO + 1);
      close_from(STDERR_FILENO + 2);  // connections of other requests among them
      work(STDERR_FILENO + 1);
    };
    runs_[id] = run_apart(loop_, alone, limits, [this, id, done, respond](std::string said, bool in_time) {
      const auto ended = runs_.extract(id);
      if (!in_time) return respond(ui_refusal(504, "no answer came in time"));
      done(std::move(said), respond);
    });
  }

  boost::asio::io_context& loop_;
  const UiSettings settings_;
  std::map<std::string, Job> jobs_;  // by pod
  std::set<std::string> others_;     // pods that are not wanted
  LogDocument::Cache lines_;
  std::map<int, std::unique_ptr<ToolRun>> runs_;
  int last_run_ = 0;
};

}  // namespace

std::unique_ptr<UiApi> make_ui_api(boost::asio::io_context& loop, UiSettings settings) {
  return std::make_unique<Api>(loop, std::move(settings));
}

}  // namespace fleetrun::launcher
