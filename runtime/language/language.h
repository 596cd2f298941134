// The language in which people are spoken to, as gettext finds it in the environment:
//
// LC_ALL, LC_MESSAGES or LANG, the first that is not empty, names a locale. C, C.UTF-8 and POSIX are English
// whatever else is set. Elsewhere LANGUAGE, a list, comes before the locale, and its first language that
// fleetrun has counts. No locale has to be installed.
#pragma once

#include "runtime/base/environ.h"

namespace fleetrun {

enum class Language { english, chinese };

/// English, too, where the locale of characters (LC_ALL, LC_CTYPE or LANG) has others than those of UTF-8.
Language language_of(const Environ& environment);

}  // namespace fleetrun
