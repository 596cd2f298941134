#include "launcher/ship/start_script.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::ship {
namespace {

bool is_plain(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           more.find(c) != std::string_view::npos;
  });
}

std::string root_words(const std::string& root) {
  if (root.empty()) return "${XDG_CACHE_HOME:-$HOME/.cache}/fleetrun/ship";
  const bool absolute = root.starts_with('/') || root.starts_with("~/");
  if (!absolute || !is_plain(root.substr(1), "/._+-"))
    throw Error(
        ErrorKind::usage, "--ship_to is '" + printable(root) + "': a plain path is needed",
        "write an absolute path or one that begins with ~/, of letters, digits and / . _ + - only, since "
        "a shell there reads it");
  return root.starts_with('~') ? "$HOME" + root.substr(1) : root;
}

}  // namespace

std::string launcher_folder(const Launcher& launcher) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(launcher.digest >> shift & 0xff));
  return "launcher-" + hex(bytes);
}

std::string start_script(const std::string& root, const Launcher& launcher, std::string_view words) {
  if (!is_plain(words, " -")) throw Error(ErrorKind::usage, "'" + printable(words) + "' is not plain");
  const std::string size = std::to_string(launcher.size);
  // No quote, '!' or backslash within: login shells of other kinds (csh, fish) read them differently. The
  // name is not there before the program is known to run.
  const std::string script = "d=" + root_words(root) + "; l=$d/" + launcher_folder(launcher) +
                             "; f=$l/fleetrun; "
                             "[ -x \"$f\" ] && [ -O \"$f\" ] && exec \"$f\" " +
                             std::string(words) +
                             "; "
                             "m=$(uname -m); [ \"$m\" = " +
                             launcher.machine +
                             " ] || "
                             "{ echo \"it is a machine of kind $m, and fleetrun here is for " +
                             launcher.machine +
                             "\" >&2; exit 98; }; "
                             "u=$(umask); umask 077; mkdir -p \"$l\" || exit 97; "
                             "[ -O \"$d\" ] || { echo \"$d belongs to somebody else\" >&2; exit 97; }; "
                             "t=$f.$$; r() { rm -f \"$t\"; }; trap r 0; trap \"exit 97\" 1 2 13 15; "
                             "echo; echo fleetrun is to be sent; "
                             "head -c " +
                             size +
                             " > \"$t\" || exit 97; "
                             "n=$(wc -c < \"$t\"); [ $n -eq " +
                             size + " ] || { echo \"$n of " + size +
                             " bytes came\" >&2; exit 97; }; "
                             "chmod 700 \"$t\" && \"$t\" version > /dev/null < /dev/null || exit 98; "
                             "mv -f \"$t\" \"$f\" || exit 97; trap - 0 1 2 13 15; umask $u; exec \"$f\" " +
                             std::string(words);
  return "exec /bin/sh -c '" + script + "'";
}

StartFailure explain_start(int exit_status, std::string_view said, const std::string& last) {
  const std::string where = "--ship_to=DIR names another place on the hosts";
  if (exit_status == kNoPlace)
    return {"fleetrun cannot be put there" + (last.empty() ? "" : ": " + last), where};
  const auto says = [&](std::string_view word) { return said.find(word) != std::string_view::npos; };
  std::string hint;
  if (says("GLIBC_"))
    hint =
        "its C library is older than the one that fleetrun was built with: build fleetrun on the oldest of "
        "the hosts";
  else if (says("ermission denied"))
    hint = "programs cannot be run from there (noexec?): " + where;
  else if (says("ot found") || says("o such file"))
    hint = "its C library is not glibc: --ship needs glibc there";
  return {"fleetrun does not run there" + (last.empty() ? "" : ": " + last), hint};
}

}  // namespace fleetrun::launcher::ship
