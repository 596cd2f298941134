#include "launcher/record/redactor.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

std::string clean(std::string_view text) {
  return Redactor().clean(text);
}

}  // namespace

TEST_CASE("what follows a name that says so is hidden, and nothing else of the line") {
  CHECK(clean("password=hunter2 user=me") == "password=[hidden] user=me");
  CHECK(clean("DB_PASSWORD: \"hunter2\", next") == "DB_PASSWORD: \"[hidden]\", next");
  CHECK(clean("{\"api_key\": \"abc\", \"n\": 3}") == "{\"api_key\": \"[hidden]\", \"n\": 3}");
  CHECK(clean(R"({"text":"secret='a\nb'"})") == R"({"text":"secret='[hidden]\nb'"})");
  CHECK(clean("curl --auth-token abcd https://x") == "curl --auth-token [hidden] https://x");
  CHECK(clean("Authorization: Bearer abc.def") == "Authorization: Bearer [hidden]");
  CHECK(clean("https://host/path?access_token=abc&n=1") == "https://host/path?access_token=[hidden]&n=1");
}

TEST_CASE("words and numbers that tell nothing stay") {
  for (const char* text : {"max_tokens=1024", "token: true", "the secret of good code", "token_loss 0.5",
                           "tokens per second: 12.5", "password=None", "https://host:80/a@b", "sk-learn"})
    CHECK(clean(text) == text);
}

TEST_CASE("users in addresses, tokens of known shapes and private keys are hidden") {
  CHECK(clean("s3://me:pw@bucket/x redis://:pw@h:1") == "s3://[hidden]@bucket/x redis://[hidden]@h:1");
  CHECK(clean("got ghp_0123456789abcdefghij.") == "got [hidden]");
  CHECK(clean("AKIAIOSFODNN7EXAMPLE0") == "[hidden]");
  CHECK(clean("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb") ==
        "a\n[hidden]\nb");
  CHECK(clean("-----BEGIN PRIVATE KEY-----\nMIIE") == "[hidden]");
  CHECK(clean("-----BEGIN CERTIFICATE-----\nMIIE") == "-----BEGIN CERTIFICATE-----\nMIIE");
}

TEST_CASE("learned values are hidden wherever they stand, the longest first") {
  Redactor redactor;
  redactor.learn(Environ{{"WANDB_API_KEY", "abcdefgh"},
                         {"MY_TOKEN", "abcdefghij"},
                         {"HOME", "/srv/abc"},
                         {"SECRET_FILE", "/run/secret"},
                         {"SHORT_TOKEN", "abc"}});
  redactor.learn(std::vector<std::string>{"--password", "qwertz12", "--token=asdfgh12", "--secret", "--x"});
  CHECK(redactor.clean("1 abcdefghij 2 abcdefgh 3 /srv/abc 4 qwertz12 5 asdfgh12 /run/secret --x") ==
        "1 [hidden] 2 [hidden] 3 /srv/abc 4 [hidden] 5 [hidden] /run/secret --x");
}

TEST_CASE("what was cleaned is clean") {
  const std::string once = clean("password=x token: 'abc' s3://a:b@c Authorization: Bearer q");
  CHECK(clean(once) == once);
}
