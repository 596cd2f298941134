#include "runtime/secure/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/base/defences.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/own_file.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"
#include "runtime/secure/job_secret_file.h"

namespace fleetrun {
namespace {

constexpr std::size_t kMaxBytes = 1024;  // of a secret's file: more is something else
constexpr char kLackOfHome[] = "say where the secret is with --secret-file, or set HOME";

std::string how_to_make(const std::string& path) {
  const std::string word = shell_quoted(path);
  return "make one: (umask 077; head -c 32 /dev/urandom > " + word + ")";
}

/// The value of a digit of base64, of its URL-safe alphabet too; -1: none.
int base64_value(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  if (digit == '+' || digit == '-') return 62;
  return digit == '/' || digit == '_' ? 63 : -1;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/// The bytes that digits of `bits` each stand for; false where one is not a digit.
bool decode_digits(std::string_view digits, int bits, int (*value_of)(char), std::string& bytes) {
  unsigned held = 0;
  int held_bits = 0;
  for (const char digit : digits) {
    const int value = value_of(digit);
    if (value < 0) return false;
    held = (held << bits | static_cast<unsigned>(value)) & 0xFFFF;
    held_bits += bits;
    if (held_bits < 8) continue;
    held_bits -= 8;
    bytes += static_cast<char>(held >> held_bits & 0xFF);
  }
  return true;
}

constexpr std::string_view kOfJob = "job ";

/// The first line where it names a job, with its end.
std::string_view line_of_job(std::string_view text) {
  const std::size_t end = text.find('\n');
  return text.starts_with(kOfJob) && end != std::string_view::npos ? text.substr(0, end + 1)
                                                                   : std::string_view();
}

/// The 32 bytes that a file's content stands for, into `bytes`.
bool decode_secret(std::string_view text, std::string& bytes) {
  text.remove_prefix(line_of_job(text).size());
  if (text.size() == Secret::kBytes) {
    bytes = text;
    return true;
  }
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() == Secret::kBytes) {
    bytes = text;
    return true;
  }
  if (text.size() == 2 * Secret::kBytes) return decode_digits(text, 4, hex_value, bytes);
  if (text.size() == 44 && text.ends_with('=')) text.remove_suffix(1);
  return text.size() == 43 && decode_digits(text, 6, base64_value, bytes);
}

/// Wipes a text that holds a secret, however the function is left.
class Wiped {
 public:
  ~Wiped() { wipe(text); }
  std::string text;
};

void check_owner_and_mode(const struct stat& status, const std::string& path) {
  const auto refuse = [&](const std::string& what, std::string hint) {
    throw Error(ErrorKind::config, "the secret in " + path + " cannot be used: " + what, std::move(hint));
  };
  if (S_ISDIR(status.st_mode)) refuse("it is a directory", "name the file in it");
  if (!S_ISREG(status.st_mode)) refuse("it is not a file", "name a file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    refuse("it belongs to user " + std::to_string(status.st_uid) + ", and this is user " +
               std::to_string(::geteuid()),
           "use a copy that is yours, with mode 0600");
  const mode_t allowed = status.st_uid == 0 && ::geteuid() != 0 ? 0740 : 0700;
  if ((status.st_mode & 07777 & ~allowed) == 0 || !defends("secrets of one reader")) return;
  char mode[8];
  ::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  refuse(std::string("others may read or change it (mode ") + mode + ")",
         "chmod 600 " + shell_quoted(path) + ", and make another secret if others may have read it");
}

std::string read_small_file(int fd, const std::string& path) {
  std::string text(kMaxBytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(fd, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    check_errno(static_cast<int>(count), "read", "reading the secret in " + path, ErrorKind::config);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

/// A file of mode 0600 that was not there before, with `text` on the disk.
UniqueFd write_new_file(int directory, const std::string& name, std::string_view text,
                        const std::string& doing) {
  const auto checked = [&](int result, const char* call) { return check_errno(result, call, doing); };
  UniqueFd fd(checked(open_own_at(directory, name, O_WRONLY | O_CREAT | O_EXCL, Readers::owner), "open"));
  checked(::fchmod(fd.value(), 0600), "fchmod");  // whatever the umask
  checked(write_all(fd.value(), text) ? 0 : -1, "write");
  checked(::fsync(fd.value()), "fsync");
  return fd;
}

/// Makes `path` and those above it that are missing, for this user alone.
void make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0) {
      check_errno(::chmod(part.c_str(), 0700), "chmod", "making " + part);  // whatever the umask
    } else if (errno != EEXIST) {
      const int why = errno;
      struct stat status = {};
      if (::stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        errno = why;
        check_errno(-1, "mkdir", "making " + part);
      }
    }
    if (end == std::string::npos) return;
  }
}

/// Gives the file its final name unless there is one of that name. False: there is.
bool publish(int directory, const std::string& draft, const std::string& name, const std::string& doing) {
  if (::linkat(directory, draft.c_str(), directory, name.c_str(), 0) == 0) return true;
  if (errno == EEXIST) return false;
  // A file system without hard links.
  if (::renameat2(directory, draft.c_str(), directory, name.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  check_errno(-1, "link", doing);
  return false;
}

void make_user_secret(const std::string& directory_path) {
  const std::string doing = "making the secret of this user";
  make_directories(directory_path);
  const UniqueFd directory(
      check_errno(::open(directory_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", doing));
  Wiped text;
  text.text = hex(Secret::random().bytes()) + '\n';
  // Not by its final name from the start: another launcher could read it half written.
  std::string draft = ".secret-";
  for (const char byte : random_bytes(8)) draft += static_cast<char>('a' + (byte & 0xF));
  const UniqueFd file = write_new_file(directory.value(), draft, text.text, doing);
  try {
    publish(directory.value(), draft, "secret", doing);
  } catch (...) {
    ::unlinkat(directory.value(), draft.c_str(), 0);
    throw;
  }
  ::unlinkat(directory.value(), draft.c_str(), 0);
  ::fsync(directory.value());
}

std::string user_directory(const Environ& environment) {
  const std::string* config = environment.find("XDG_CONFIG_HOME");
  if (config && config->starts_with('/')) return *config + "/fleetrun";  // the standard: others are ignored
  const std::string* home = environment.find("HOME");
  if (home && home->starts_with('/')) return *home + "/.config/fleetrun";
  throw Error(ErrorKind::config, "this user has no secret for other hosts: HOME is not set", kLackOfHome);
}

}  // namespace

/// A page of memory for one secret.
class Secret::Page {
 public:
  Page() : size_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) check_errno(-1, "mmap", "holding a secret");
    if (defends("secrets not dumped")) ::madvise(memory_, size_, MADV_DONTDUMP);
    ::mlock(memory_, size_);  // kept off the swap where the limits allow it
  }
  ~Page() {
    ::explicit_bzero(memory_, kBytes);
    ::munmap(memory_, size_);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  std::span<unsigned char> bytes() const noexcept { return {static_cast<unsigned char*>(memory_), kBytes}; }

 private:
  std::size_t size_;
  void* memory_ = nullptr;
};

Secret Secret::random() {
  auto page = std::make_shared<Page>();
  fill_with_random_bytes(page->bytes());
  return Secret(std::move(page));
}

Secret Secret::from_bytes(std::string_view bytes) {
  if (bytes.size() != kBytes)
    throw Error(ErrorKind::config, "a secret has 32 bytes, not " + std::to_string(bytes.size()));
  if (std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return byte == bytes[0]; }))
    throw Error(ErrorKind::config, "all bytes of the secret are the same: it was not drawn at random");
  auto page = std::make_shared<Page>();
  std::copy(bytes.begin(), bytes.end(), page->bytes().begin());
  return Secret(std::move(page));
}

Secret Secret::derive(std::string_view label) const {
  auto page = std::make_shared<Page>();
  Digest digest = KeyedHash(bytes()).of({label});
  std::copy(digest.begin(), digest.end(), page->bytes().begin());
  wipe(digest);
  return Secret(std::move(page));
}

std::string_view Secret::bytes() const noexcept {
  return {reinterpret_cast<const char*>(page_->bytes().data()), kBytes};
}

Secret read_secret_file(const std::string& path) {
  // Without waiting: of a FIFO nobody may ever open the other end.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    const bool missing = errno == ENOENT;
    throw Error(ErrorKind::config, "the secret in " + path + " cannot be used: " + ::strerror(errno),
                missing
                    ? "copy it from the host where the job's other launchers have it, or " + how_to_make(path)
                    : "it has to be a file that this user can read");
  }
  struct stat status = {};
  check_errno(::fstat(fd.value(), &status), "fstat", "reading the secret in " + path);
  check_owner_and_mode(status, path);
  Wiped text, bytes;
  text.text = read_small_file(fd.value(), path);
  if (text.text.empty())
    throw Error(ErrorKind::config, "the secret in " + path + " cannot be used: the file is empty",
                how_to_make(path));
  if (!decode_secret(text.text, bytes.text))
    throw Error(ErrorKind::config,
                "the secret in " + path +
                    " cannot be used: it is neither 32 bytes, nor 64 hexadecimal digits, nor " +
                    "32 bytes in base64 (the file has " + (text.text.size() < kMaxBytes ? "" : "at least ") +
                    std::to_string(text.text.size()) + " bytes)",
                how_to_make(path));
  return while_doing("reading the secret in " + path, [&] { return Secret::from_bytes(bytes.text); });
}

void write_secret_file(const std::string& path, const Secret& secret) {
  Wiped text;
  text.text = hex(secret.bytes()) + '\n';
  write_new_file(AT_FDCWD, path, text.text, "writing the secret to " + path);
}

Secret user_secret(const Environ& environment, std::string& path) {
  const std::string directory = user_directory(environment);
  path = directory + "/secret";
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    try {
      make_user_secret(directory);
    } catch (const Error& error) {
      throw Error(ErrorKind::config,
                  "the secret of this user cannot be made at " + path + ": " + error.what(),
                  "say where the secret is with --secret-file");
    }
  }
  return read_secret_file(path);
}

Secret secret_of_job(const Secret& own, const std::string& job) {
  return defends("a secret for each job") ? own.derive("launchers of job " + job) : own;
}

std::string job_secret_text(const Secret& of_job, const std::string& job) {
  return std::string(kOfJob) + job + "\n" + hex(of_job.bytes()) + "\n";
}

std::string job_of_secret_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return {};
  Wiped text;
  text.text = read_small_file(fd.value(), path);
  const std::string_view line = line_of_job(text.text);
  return line.empty() ? "" : std::string(line.substr(kOfJob.size(), line.size() - kOfJob.size() - 1));
}

}  // namespace fleetrun
