#include "launcher/model/readiness_rule.h"

#include <regex>

namespace fleetrun::launcher {

std::string regex_fault(const std::string& text) {
  try {
    const std::regex tried(text);
    return "";
  } catch (const std::regex_error& error) {
    return error.what();
  }
}

}  // namespace fleetrun::launcher
