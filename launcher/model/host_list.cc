#include "launcher/model/host_list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "launcher/model/host_range.h"
#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxSlots = 65'536;
constexpr std::size_t kLongestName = 253;  // of DNS
constexpr std::size_t kLargestFile = 16 << 20;
constexpr int kUnlikelySlots = 1024;  // and more: a port, as long as slots= is not written
constexpr std::string_view kSshPort = "22";
constexpr auto kHostHint =
    "a host is written as h1, user@h1, 10.0.0.1 or [fe80::1], followed by :2 for two trainers";

/// What other launchers call it, and what that is here; nothing: it has no effect.
struct OtherName {
  std::string_view said, means;
};
constexpr OtherName kOtherNames[] = {
    {"cpu", "slots"},     {"cpus", "slots"},     {"count", "slots"},     // Open MPI, LAM
    {"username", "user"}, {"user_name", "user"}, {"user-name", "user"},  // Open MPI
    {"max_slots", ""},    {"max-slots", ""},     {"slots_max", ""},
    {"slots-max", ""},    {"binding", ""},       {"ifname", ""},  // MPICH
};

/// A word of the list before its ranges are expanded, and where it is.
struct Entry {
  std::string_view word;
  std::string where;
};

constexpr std::size_t kShown = 80;  // bytes of what an error quotes

[[noreturn]] void refuse(const std::string& where, const std::string& why, std::string hint = {}) {
  throw Error(ErrorKind::config, where + ": " + why, std::move(hint));
}

bool is_letter_or_digit(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

/// An IPv6 address, with a zone where it is of one link only: fe80::1%eth0.
bool is_address6(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos && !is_name(text.substr(percent + 1))) return false;
  in6_addr address;
  return ::inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &address) == 1;
}

void check_name(const std::string& where, std::string_view name, std::string_view what) {
  if (!defends("names of hosts")) return;
  if (name.starts_with('-'))
    refuse(where, std::string(what) + " " + in_quotes(name, kShown) + " begins with '-'", kHostHint);
  if (name.size() > kLongestName)
    refuse(where, std::string(what) + " " + in_quotes(name, kShown) + " has " + std::to_string(name.size()) +
                      " characters, and " + std::to_string(kLongestName) + " are the most");
  if (is_name(name)) return;
  const std::string why =
      in_quotes(name, kShown) + " is not the name of a " + (what == "the user" ? "user" : "host");
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    refuse(where, why, "it holds a character that is not ASCII, a no-break space perhaps: type it again");
  if (name.find_first_of(" \n") != std::string_view::npos)
    refuse(where, why, "hosts are separated by commas: h1,h2");
  refuse(where, why, kHostHint);
}

int read_count(const std::string& where, std::string_view name, std::string_view text, int min) {
  const auto number = parse_integer(text);
  if (!number || *number < min || *number > kMaxSlots)
    refuse(where, std::string(name) + " is " + in_quotes(text, kShown) + ": a whole number from " +
                      std::to_string(min) + " to " + std::to_string(kMaxSlots) + " is needed");
  return static_cast<int>(*number);
}

/// What is said about a host beside its name.
class Attributes {
 public:
  explicit Attributes(std::string where) : where_(std::move(where)) {}

  void set(std::string_view name, std::string_view value, std::vector<std::string>& notes) {
    const auto* other = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                     [&](const OtherName& one) { return one.said == name; });
    if (other != std::end(kOtherNames)) {
      if (other->means.empty()) {
        notes.push_back(where_ + ": " + std::string(name) + " has no effect");
        return;
      }
      name = other->means;
    }
    if (!names_.emplace(name, value).second) refuse(where_, std::string(name) + " is given twice");
    if (name == "slots") {
      host_.slots = read_count(where_, name, value, 1);
    } else if (name == "trainers") {
      trainers_ = read_count(where_, name, value, 0);
    } else if (name == "servers") {
      host_.servers = read_count(where_, name, value, 0);
    } else if (name == "port") {
      host_.port = static_cast<std::uint16_t>(read_port(value));
    } else if (name == "user") {
      check_name(where_, value, "the user");
      host_.user = value;
    } else if (name == "devices") {
      host_.devices = read_devices(value);
    } else {
      const std::vector<std::string> names = {"slots", "trainers", "servers", "port", "user", "devices"};
      const auto meant = nearest(name, names);
      refuse(where_, in_quotes(name, kShown) + " cannot be said of a host",
             meant ? "is " + *meant + " meant?" : "use slots, trainers, servers, port, user or devices");
    }
  }

  /// A number behind a colon, which some write for the port of ssh.
  void set_bare(std::string_view value, std::vector<std::string>& notes) {
    if (const auto number = parse_integer(value); number && *number >= kUnlikelySlots && *number <= kMaxSlots)
      refuse(where_, "':" + std::string(value) + "' would be " + std::string(value) + " trainers there",
             "write port=" + std::string(value) +
                 " for the port of its ssh server, slots=" + std::string(value) + " for so many trainers");
    if (value == kSshPort)
      notes.push_back(where_ + ": ':22' is 22 trainers; the port of an ssh server is written as port=22");
    set("slots", value, notes);
  }

  RemoteHost host() {
    if (trainers_ && host_.slots) refuse(where_, "slots and trainers are the same, and both are given");
    if (trainers_) host_.slots = trainers_;
    if (trainers_ && !host_.servers) host_.servers = 0;
    if (host_.servers && !host_.slots) host_.slots = 0;
    if (host_.slots == 0 && host_.servers == 0)
      refuse(where_, "nothing is to run there", "leave the host out");
    if (host_.devices && host_.slots && host_.devices->size() != static_cast<std::size_t>(*host_.slots))
      refuse(
          where_,
          std::to_string(*host_.slots) + " slots and " + std::to_string(host_.devices->size()) + " devices",
          "give one of them");
    if (host_.devices) host_.slots = static_cast<int>(host_.devices->size());
    host_.where = where_;
    return host_;
  }

 private:
  int read_port(std::string_view value) const {
    const auto number = parse_integer(value);
    if (!number || *number < 1 || *number > 65'535)
      refuse(where_, "port is " + in_quotes(value, kShown) + ": 1 to 65535 is needed");
    return static_cast<int>(*number);
  }

  std::vector<std::string> read_devices(std::string_view value) const {
    std::vector<std::string> devices = split(value, ',');
    std::vector<std::string> sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    const bool named =
        std::all_of(devices.begin(), devices.end(), [](const std::string& d) { return is_name(d); });
    if (devices.empty() || !named || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      refuse(where_, "devices is " + in_quotes(value, kShown) +
                         ": a list such as 0,2 is needed, without repetitions");
    return devices;
  }

  std::string where_;
  std::map<std::string, std::string, std::less<>> names_;
  std::optional<int> trainers_;
  RemoteHost host_;
};

/// Collects hosts; one that is named again is counted.
class Collector {
 public:
  /// `attributes` are those behind the word, "slots=2".
  void add(const Entry& entry, const std::vector<std::pair<std::string, std::string>>& attributes) {
    Attributes said(entry.where);
    std::string_view word = entry.word;
    const std::string_view user = take_user(entry, word);
    const std::string_view name = take_name(entry, word);
    for (const std::string& part : parts_behind(entry, word)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        said.set_bare(part, result_.notes);
      else
        said.set(std::string_view(part).substr(0, equals), std::string_view(part).substr(equals + 1),
                 result_.notes);
    }
    for (const auto& [key, value] : attributes) said.set(key, value, result_.notes);
    RemoteHost host = said.host();
    if (!user.empty() && !host.user.empty()) refuse(entry.where, "the user is given twice");
    if (!user.empty()) host.user = user;
    for (std::string& one : names(entry, name)) {
      host.name = std::move(one);
      insert(entry, host);
    }
  }

  /// Where any name is repeated, each line without a number is one trainer.
  RemoteHosts result() {
    if (!counted_.empty()) {
      for (RemoteHost& host : result_.hosts) host.slots = host.slots.value_or(1);
      result_.notes.push_back(
          counted_ + " is named more than once: the numbers are added up, one trainer where none is given");
    }
    return std::move(result_);
  }

 private:
  static std::string_view take_user(const Entry& entry, std::string_view& word) {
    const std::size_t at = word.rfind('@');
    if (at == std::string_view::npos) return {};
    const std::string_view user = word.substr(0, at);
    word.remove_prefix(at + 1);
    if (user.empty() || word.empty())
      refuse(entry.where,
             in_quotes(entry.word, kShown) + " lacks the " + (user.empty() ? "user before" : "host behind") +
                 " its '@'",
             kHostHint);
    check_name(entry.where, user, "the user");
    return user;
  }

  /// Leaves what is behind the name, ":2", in `word`.
  static std::string_view take_name(const Entry& entry, std::string_view& word) {
    if (is_address6(word)) return std::exchange(word, {});
    std::size_t end = 0;
    for (bool inside = false; end < word.size() && (word[end] != ':' || inside); ++end) {
      if (word[end] == '[') inside = true;
      if (word[end] == ']') inside = false;
    }
    const std::string_view name = word.substr(0, end);
    word.remove_prefix(end);
    if (name.empty())
      refuse(entry.where,
             entry.word.empty() ? "a host is empty" : in_quotes(entry.word, kShown) + " has no name",
             kHostHint);
    return name;
  }

  static std::vector<std::string> parts_behind(const Entry& entry, std::string_view rest) {
    if (rest.empty()) return {};
    std::vector<std::string> parts = split(rest.substr(1), ':');
    if (parts.empty() || std::find(parts.begin(), parts.end(), "") != parts.end())
      refuse(entry.where, in_quotes(entry.word, kShown) + " ends with ':' or has nothing between two of them",
             kHostHint);
    return parts;
  }

  static std::vector<std::string> names(const Entry& entry, std::string_view name) {
    if (name.starts_with('[') && name.ends_with(']') && name.find(':') != std::string_view::npos) {
      name = name.substr(1, name.size() - 2);
      if (!is_address6(name)) refuse(entry.where, in_quotes(name, kShown) + " is not an IPv6 address");
    }
    if (is_address6(name)) return {std::string(name)};
    if (name.find_first_of("[]") == std::string_view::npos) {
      check_name(entry.where, name, "the host");
      return {std::string(name)};
    }
    std::vector<std::string> names = while_doing_at(entry.where, [&] { return expand_range(name); });
    for (const std::string& one : names) check_name(entry.where, one, "the host");
    return names;
  }

  template <class Action>
  static std::vector<std::string> while_doing_at(const std::string& where, Action&& action) {
    try {
      return action();
    } catch (const Error& error) {
      refuse(where, error.what(), error.hint());
    }
  }

  void insert(const Entry& entry, const RemoteHost& host) {
    const auto [other, fresh] = seen_.emplace(host_key(host.name), result_.hosts.size());
    if (!fresh) {
      count_again(result_.hosts[other->second], host);
      if (counted_.empty()) counted_ = entry.where + ": " + written(host);
      return;
    }
    if (result_.hosts.size() == kMaxNamedHosts)
      refuse(entry.where, "these are more than " + std::to_string(kMaxNamedHosts) + " hosts");
    result_.hosts.push_back(host);
  }

  RemoteHosts result_;
  std::map<std::string, std::size_t> seen_;
  std::string counted_;  // where the first repeated name is, and which
};

/// "h1 slots = 2 port=22" → {"h1", "slots=2", "port=22"}
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool joined = false;  // the next word belongs to the last one
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t') {
      ++i;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t", i), line.size());
    const std::string_view word = line.substr(i, end - i);
    if (!words.empty() && (joined || word.starts_with('=')))
      words.back().append(word);
    else
      words.emplace_back(word);
    joined = word.ends_with('=');
    i = end;
  }
  return words;
}

/// What is behind a host: NAME=VALUE…; or Grid Engine's number of slots, queue and processors.
std::vector<std::pair<std::string, std::string>> attributes_in(const std::vector<std::string>& words,
                                                               const std::string& where) {
  const bool has_queue = words.size() == 4 && words[2].find('@') != std::string::npos;
  if ((words.size() == 2 || has_queue) && parse_integer(words[1])) return {{"slots", words[1]}};
  std::vector<std::pair<std::string, std::string>> attributes;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos)
      refuse(where, in_quotes(words[i], kShown) + " after the host is not understood",
             "two trainers are written as slots=2; a comment begins with #");
    attributes.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
  }
  return attributes;
}

void add_line(Collector& collector, std::string_view line, const std::string& where) {
  const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
  if (words.empty()) return;
  std::vector<std::string> hosts = split_outside_brackets(words.front(), ',');
  if (hosts.size() > 1 && hosts.back().empty()) hosts.pop_back();  // "h1,"
  if (hosts.size() > 1 && words.size() > 1)
    refuse(where, in_quotes(words.front(), kShown) + " are several hosts, and something is said of them",
           "write each on a line of its own");
  const auto attributes = attributes_in(words, where);
  for (const std::string& host : hosts) collector.add({host, where}, attributes);
}

std::string_view without_blanks(std::string_view word) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = std::min(word.find_first_not_of(kBlanks), word.size());
  return word.substr(begin, word.find_last_not_of(kBlanks) + 1 - begin);
}

std::string read_text(int fd, const std::string& path) {
  std::string text;
  for (char bytes[16'384];;) {
    const ssize_t count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    check_errno(static_cast<int>(count), "read", path, ErrorKind::config);
    if (count == 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.size() > kLargestFile) refuse(path, "the file is larger than 16 MiB");
  }
}

}  // namespace

RemoteHosts parse_host_list(std::string_view text, std::string_view where) {
  Collector collector;
  const std::string origin(where);
  if (text.empty()) refuse(origin, "no host is given", kHostHint);
  std::vector<std::string> words = split_outside_brackets(text, ',');
  if (words.size() > 1 && without_blanks(words.back()).empty()) words.pop_back();  // of `tr '\\n' ,`
  for (const std::string& word : words) {
    const std::string_view host = without_blanks(word);
    if (host.empty())
      refuse(origin, "a host in " + in_quotes(text, kShown) + " is empty", "remove the comma");
    collector.add({host, origin}, {});
  }
  return collector.result();
}

RemoteHosts parse_hostfile(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Collector collector;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    const bool is_two = text.substr(end).starts_with("\r\n");
    text.remove_prefix(std::min(end + (is_two ? 2 : 1), text.size()));
    const std::string where = path + ":" + std::to_string(number);
    if (line.find('\0') != std::string_view::npos)
      refuse(where, "the line holds a NUL byte; this is not a list of hosts",
             "is it UTF-16? save it as UTF-8");
    add_line(collector, line, where);
  }
  RemoteHosts result = collector.result();
  if (result.hosts.empty())
    refuse(path, "no host is in the file", "write one host per line, followed by slots=2 for two trainers");
  return result;
}

RemoteHosts read_hostfile(const std::string& path) {
  // A pipe without a writer would be waited for, were it opened in the usual way.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file) refuse(path, std::string("the list of hosts cannot be read: ") + std::strerror(errno));
  struct stat facts = {};
  check_errno(::fstat(file.value(), &facts), "fstat", path, ErrorKind::config);
  if (!S_ISREG(facts.st_mode))
    refuse(path,
           S_ISDIR(facts.st_mode) ? "this is a directory, not a list of hosts" : "this is not a regular file",
           "--hostfile takes a text file, --hosts a list on the command line");
  return parse_hostfile(read_text(file.value(), path), path);
}

void count_again(RemoteHost& first, const RemoteHost& again) {
  const auto differ = [&](const std::string& what) {
    refuse(again.where,
           written(again) + " is in the list twice" +
               (first.name == again.name ? "" : ", the other time as " + written(first)) +
               (first.where == again.where ? "" : ", first in " + first.where) + ", with " + what,
           "name it once; h1:2 is two trainers there");
  };
  if (first.user != again.user || first.port != again.port) differ("another user or port");
  if (first.devices || again.devices) differ("devices");
  if (first.servers.has_value() != again.servers.has_value()) differ("and without its servers or trainers");
  if (first.servers) *first.servers += *again.servers;
  first.slots = first.slots.value_or(1) + again.slots.value_or(1);
  if (*first.slots > kMaxSlots) differ("more than " + std::to_string(kMaxSlots) + " trainers");
}

std::string written(const RemoteHost& host) {
  return host.name.find(':') == std::string::npos ? host.name : "[" + host.name + "]";
}

std::string host_key(std::string_view name) {
  in6_addr address;
  if (name.find('%') == std::string_view::npos &&
      ::inet_pton(AF_INET6, std::string(name).c_str(), &address) == 1) {
    char text[INET6_ADDRSTRLEN];
    return ::inet_ntop(AF_INET6, &address, text, sizeof text);
  }
  std::string key(name.substr(0, name.ends_with('.') ? name.size() - 1 : name.size()));
  std::transform(key.begin(), key.end(), key.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return key;
}

}  // namespace fleetrun::launcher
