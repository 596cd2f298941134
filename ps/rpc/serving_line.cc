#include "ps/rpc/serving_line.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace fleetrun::ps {

std::string serving_line(std::chrono::system_clock::time_point now, int thread, std::uint32_t rank,
                         std::string_view endpoint, const std::source_location& where) {
  using std::chrono::microseconds;
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(now));
  const auto rest =
      std::chrono::duration_cast<microseconds>(now - std::chrono::floor<std::chrono::seconds>(now)).count();
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 80> head;
  std::snprintf(head.data(), head.size(), "I%02d%02d %02d:%02d:%02d.%06d %d ", local.tm_mon + 1,
                local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, static_cast<int>(rest), thread);
  std::string_view file = where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  std::string line(head.data());
  line.append(file).append(":").append(std::to_string(where.line()));
  line.append("] running server with rank id: ").append(std::to_string(rank));
  return line.append(", endpoint: ").append(endpoint);
}

}  // namespace fleetrun::ps
