// The files of the page, which are part of the program.
#pragma once

#include <string_view>

namespace fleetrun::launcher {

struct PageFile {
  std::string_view path, type, text;
};

/// The file at `path` ("/", "/page.js"); text empty: there is none.
PageFile page_file(std::string_view path) noexcept;

}  // namespace fleetrun::launcher
