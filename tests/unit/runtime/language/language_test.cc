#include "runtime/language/language.h"

#include <doctest/doctest.h>

using namespace fleetrun;

namespace {

bool is_chinese(const Environ& environment) {
  return language_of(environment) == Language::chinese;
}

}  // namespace

TEST_CASE("the language is that of the first variable that is not empty") {
  CHECK_FALSE(is_chinese({}));
  CHECK(is_chinese({{"LANG", "zh_CN.UTF-8"}}));
  CHECK(is_chinese({{"LC_MESSAGES", "zh_CN.UTF-8"}, {"LANG", "en_US.UTF-8"}}));
  CHECK(is_chinese({{"LC_ALL", ""}, {"LANG", "zh_CN.utf8"}}));
  CHECK_FALSE(is_chinese({{"LC_ALL", "C"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LC_ALL", "en_US.UTF-8"}, {"LC_MESSAGES", "zh_CN.UTF-8"}}));
  for (const char* locale : {"zh", "zh_CN", "zh_TW.UTF-8", "zh_CN.UTF-8@pinyin", "zh@stroke"})
    CHECK_MESSAGE(is_chinese({{"LANG", locale}}), locale);
  for (const char* locale : {"C", "POSIX", "C.UTF-8", "en_US.UTF-8", "de_DE.UTF-8", "zho", ""})
    CHECK_MESSAGE(!is_chinese({{"LANG", locale}}), locale);
}

TEST_CASE("LANGUAGE comes before the locale, and not in the locale C") {
  CHECK(is_chinese({{"LANGUAGE", "zh_CN"}, {"LANG", "en_US.UTF-8"}}));
  CHECK(is_chinese({{"LANGUAGE", "de:zh_CN:en"}, {"LANG", "de_DE.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LANGUAGE", "en:zh_CN"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LANGUAGE", "de"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK(is_chinese({{"LANGUAGE", ""}, {"LANG", "zh_CN.UTF-8"}}));
  for (const char* locale : {"", "C", "C.UTF-8", "POSIX"})
    CHECK_MESSAGE(!is_chinese({{"LANGUAGE", "zh_CN"}, {"LANG", locale}}), locale);
}

TEST_CASE("who has no UTF-8 reads English") {
  CHECK_FALSE(is_chinese({{"LANG", "zh_CN.GB18030"}}));
  CHECK_FALSE(is_chinese({{"LC_CTYPE", "C"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LC_MESSAGES", "zh_CN.UTF-8"}}));
  CHECK(is_chinese({{"LC_CTYPE", "C.UTF-8"}, {"LANG", "zh_CN"}}));
}
