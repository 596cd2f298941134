#include "dataset/base/first_error.h"

#include <doctest/doctest.h>

#include <new>

#include "tests/support/errors.h"

using namespace fleetrun;
using fleetrun::dataset::FirstError;

TEST_CASE("the first error is thrown to everyone, each with a context of its own") {
  FirstError first;
  first.rethrow();
  first.put(std::make_exception_ptr(Error(ErrorKind::data, "first")));
  first.put(std::make_exception_ptr(Error(ErrorKind::data, "second")));
  for (int consumer = 0; consumer < 2; ++consumer) {
    Error error = tests::error_of([&first] { first.rethrow(); });
    CHECK(error.what() == std::string("first"));
    CHECK(error.context().empty());
    try {
      first.rethrow();
    } catch (Error& thrown) {
      thrown.while_doing("reading");
    }
  }
  first.clear();
  first.rethrow();
  first.put(std::make_exception_ptr(std::bad_alloc()));
  CHECK_THROWS_AS(first.rethrow(), std::bad_alloc);
}
