// zlib reads a file that is not a gzip file as it is.
#include "ps/saving/gzip_text.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <memory>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;

struct Close {
  void operator()(gzFile_s* file) const noexcept { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

File open_file(const std::string& path, const char* mode) {
  errno = 0;
  File file(gzopen(path.c_str(), mode));
  if (!file) check_errno(-1, "gzopen", path);
  return file;
}

}  // namespace

void read_lines(const std::string& path, const std::function<void(std::string_view, std::size_t)>& take) {
  const File file = open_file(path, "rb");
  std::array<char, 65536> buffer;
  std::string rest;
  std::size_t number = 0;
  for (;;) {
    const int got = gzread(file.get(), buffer.data(), buffer.size());
    int code = Z_OK;
    const char* reason = gzerror(file.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      throw Error(ErrorKind::data, path + ": it is damaged: " + reason);
    }
    if (got == 0) break;
    std::string_view left(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
      rest.append(left.substr(0, end));
      take(rest, ++number);
      rest.clear();
      left.remove_prefix(end + 1);
    }
    rest.append(left);
    if (rest.size() > kLongestLine) {
      throw Error(ErrorKind::data, path + ": line " + std::to_string(number + 1) + " is longer than 16 MiB");
    }
  }
  if (!rest.empty()) take(rest, ++number);
}

void write_gzip(const std::string& path, std::string_view text) {
  File file = open_file(path, "wb");
  const bool written = text.empty() || gzwrite(file.get(), text.data(), static_cast<unsigned>(text.size())) ==
                                           static_cast<int>(text.size());
  if (gzclose(file.release()) == Z_OK && written) return;
  throw Error(ErrorKind::host, path + ": it cannot be written");
}

}  // namespace fleetrun::ps
