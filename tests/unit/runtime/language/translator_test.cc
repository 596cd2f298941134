#include "runtime/language/translator.h"

#include <doctest/doctest.h>

#include "runtime/language/chinese_catalogue.h"
#include "runtime/language/line_words.h"

using namespace fleetrun;

namespace {

using namespace std::string_view_literals;

const Translator kTranslator(
    "write it out\0写全\0"
    "port {n} is in use\0端口 {n} 已被占用\0"
    "{text} is in use\0{text} 已被占用\0"
    "{word} has {text}, not {text2}\0{word} 没有 {text2}，只有 {text}\0"
    "{word} {n} {sentence}\0{word} {n} {sentence}\0"
    "exited with {n}: {sentence}\0以 {n} 退出：{sentence}\0"
    "{role} of {n}\0{role}，共 {n}\0"sv);

std::string said(std::string_view english) {
  return kTranslator.find(english).value_or("nothing");
}

}  // namespace

TEST_CASE("a sentence is found as it is, or with its values") {
  CHECK(said("write it out") == "写全");
  CHECK(said("port 8000 is in use") == "端口 8000 已被占用");
  CHECK(said("write it outside") == "nothing");
  CHECK(said("") == "nothing");
  CHECK(said(" is in use") == "nothing");
}

TEST_CASE("of several that fit the one counts that has most letters of its own") {
  CHECK(said("port h:8000 is in use") == "port h:8000 已被占用");
}

TEST_CASE("values change places, and are as short as they can be") {
  CHECK(said("h1 has a, not b, not c") == "h1 没有 b, not c，只有 a");
  CHECK(said("h 1 has a, not b") == "nothing");
}

TEST_CASE("what almost fits in very many ways is refused in one go") {
  const Translator five("{text}; {text2}; {text3}; {text4}; {text5} end\0 end\0"sv);
  std::string clauses;
  while (clauses.size() < 4000) clauses += "a; ";
  CHECK(!five.find(clauses));  // of a thousand clauses five can be chosen in 10^13 ways
  CHECK(five.find("a; b; c; d; e; f end") == " end");
}

TEST_CASE("a sentence in a sentence is translated, a text is not") {
  CHECK(said("trainer 1 exited with 1: port 80 is in use") == "trainer 1 以 1 退出：端口 80 已被占用");
  CHECK(said("trainer 1 exited with 1: ValueError: no lines") == "trainer 1 以 1 退出：ValueError: no lines");
  CHECK(said("write it out is in use") == "write it out 已被占用");
}

TEST_CASE("parts between semicolons are translated where each has a translation") {
  CHECK(said("write it out; port 1 is in use; write it out") == "写全；端口 1 已被占用；写全");
  CHECK(said("write it out; and more") == "nothing");
}

TEST_CASE("braces around other words are letters") {
  CHECK(said("{role} of 3") == "{role}，共 3");
  CHECK(said("trainer of 3") == "nothing");
}

TEST_CASE("lines are translated one by one, quoted ones and unknown ones stay") {
  CHECK(kTranslator.lines("write it out\n  write it out\n  | write it out\nabc\n\nwrite it out") ==
        "写全\n  写全\n  | write it out\nabc\n\n写全");
  CHECK(kTranslator.lines("") == "");
  CHECK(kTranslator.lines("abc\n") == "abc\n");
}

TEST_CASE("a long text costs no time") {
  const std::string long_text(200'000, 'a');
  CHECK(said(long_text + " is in use") == "nothing");
}

TEST_CASE("a program speaks English until it is told otherwise") {
  CHECK(translated("write the flag out") == "write the flag out");
  speak(Language::chinese);
  CHECK(translated("write the flag out") == "请写出完整的参数名");
  CHECK(translated_lines("fleetrun: error: unknown flag --sever_num\n  hint: did you mean --server_num?\n") ==
        "fleetrun: 错误：未知参数 --sever_num\n  提示：是不是 --server_num？\n");
  CHECK(translated("nobody has said this") == "nobody has said this");
  speak(Language::english);
  CHECK(translated("write the flag out") == "write the flag out");
}

TEST_CASE("a line ends at blanks, and within Chinese not before a mark that closes") {
  std::string text;
  for (const LineWord& word : line_words("参数（见 --help）是 1。a b"))
    text.append(word.after_blank ? " " : "|").append(word.text);
  CHECK(text == " 参|数|（见 --help）|是 1。|a b");
  CHECK(line_words("").empty());
}
