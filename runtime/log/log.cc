// A logger for each line instead of one for the process:
// lines are rare, and nothing global has to be made or ended.
#include "runtime/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>
#include <memory>

namespace fleetrun::log {
namespace {

void write(spdlog::level::level_enum level, std::string_view text, const Source& where) noexcept {
  try {
    spdlog::logger logger("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger.set_pattern("%L%m%d %H:%M:%S.%f %t %s:%#] %v");
    logger.log({where.file, where.line, where.function}, level, text);
  } catch (const std::exception&) {
    // A line that cannot be written must not end what it tells about.
  }
}

}  // namespace

void info(std::string_view text, Source where) noexcept {
  write(spdlog::level::info, text, where);
}

void warning(std::string_view text, Source where) noexcept {
  write(spdlog::level::warn, text, where);
}

}  // namespace fleetrun::log
