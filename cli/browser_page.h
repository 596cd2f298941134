// Opens an address in the user's browser. Its token is a password, and the words of a command are seen by
// everybody on the host: the browser is given a file that only this user reads, and that leads on.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// The file lasts as long as this.
class BrowserPage {
 public:
  /// By $BROWSER, or the desktop's opener. Throws: Error(host) where neither is there or the file cannot be
  /// written.
  BrowserPage(const std::string& url, const Environ& environment);
  ~BrowserPage();
  BrowserPage(const BrowserPage&) = delete;
  BrowserPage& operator=(const BrowserPage&) = delete;

 private:
  std::string path_;
};

}  // namespace fleetrun::cli
