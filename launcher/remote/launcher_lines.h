// What a launcher says on its standard error, cut into LAUNCH lines with what belongs to them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/remote/agent_channel.h"

namespace fleetrun::launcher::remote {

/// Keeps the end: from the line on that says that the job failed there, everything is the failure's screen.
class LauncherLines {
 public:
  /// Bytes as they come; complete records come back. A record is complete at the end
  /// of what was written together.
  std::vector<Log> take(std::string_view bytes);
  /// What is left at the end: lines that no LAUNCH line began, and the screen. At most 64 KiB, the end of it.
  std::string screen();

 private:
  void add_line(std::string_view line, std::vector<Log>& records);

  std::string partial_, screen_;
  Log record_;
  bool ends_ = false;
};

}  // namespace fleetrun::launcher::remote
