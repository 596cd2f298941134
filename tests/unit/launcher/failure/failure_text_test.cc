#include "launcher/failure/failure_text.h"

#include <string>

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

namespace {

FailureText found(const std::string& log) {
  const auto text = find_failure(log);
  REQUIRE(text.has_value());
  return *text;
}

const std::string kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"/srv/u/train.py\", line 12, in <module>\n"
    "    main()\n"
    "  File \"/srv/u/model.py\", line 3, in step\n"
    "    raise ValueError('bad batch 17')\n"
    "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    "ValueError: bad batch 17\n";

}  // namespace

TEST_CASE("a log without a failure says nothing") {
  CHECK_FALSE(find_failure("").has_value());
  CHECK_FALSE(find_failure("epoch 1 loss 0.3\nepoch 2 loss 0.2\n").has_value());
  CHECK_FALSE(find_failure(std::string(200000, 'x')).has_value());
  CHECK(last_line("") == "");
  CHECK(last_line("step 1\n \x1b[31mno rows \x1b[0m\n\n \n") == "no rows");
  CHECK(last_line("10%\r20%\rno rows") == "no rows");
  CHECK(last_line(std::string(200000, 'x')).size() < 400);
}

TEST_CASE("a Python traceback is found whole, with its exception as the summary") {
  const FailureText text = found("epoch 1\n" + kTraceback + "\nepoch 2\n");
  CHECK(text.family == FailureFamily::python);
  CHECK(text.summary == "ValueError: bad batch 17");
  CHECK(text.block == kTraceback);
  CHECK(text.signature == "python ValueError: bad batch N @ model.py:step");
  CHECK_FALSE(text.consequence);
}

TEST_CASE("the last of several tracebacks counts") {
  CHECK(
      found(
          kTraceback +
          "\nstep\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'k'\n")
          .summary == "KeyError: 'k'");
}

TEST_CASE("colours, a prefix on every line and carriage returns do not hide a traceback") {
  std::string log;
  for (std::string rest = kTraceback; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    log += "\x1b[31m[rank5]: " + rest.substr(0, end) + "\x1b[0m\r\n";
    rest.erase(0, end + 1);
  }
  const FailureText text = found(" 10%|#   |\r 20%|##  |\r" + log);
  CHECK(text.summary == "ValueError: bad batch 17");
  CHECK(text.signature == "python ValueError: bad batch N @ model.py:step");
  CHECK(text.block.starts_with("[rank5]: Traceback"));
}

TEST_CASE("of a chain the last exception is shown and the first decides what it follows from") {
  const std::string wrapped =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in recv\n    s.recv(1)\n"
      "ConnectionResetError: [Errno 104] Connection reset by peer\n\n"
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in train\n    sync()\n"
      "RuntimeError: step 4 failed\n";
  CHECK(found(wrapped).summary == "RuntimeError: step 4 failed");
  CHECK(found(wrapped).consequence);
  CHECK(found(wrapped).block == wrapped);

  const std::string farewell =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nValueError: nan\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 2, in g\n    x\nBrokenPipeError: [Errno 32] "
      "Broken pipe\n";
  CHECK(found(farewell).summary == "BrokenPipeError: [Errno 32] Broken pipe");
  CHECK_FALSE(found(farewell).consequence);
}

TEST_CASE("an exception that another process handed over is told with its origin") {
  const FailureText text = found(
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    next(it)\n"
      "RuntimeError: Caught ValueError in DataLoader worker process 0.\n"
      "Original Traceback (most recent call last):\n  File \"w.py\", line 3, in load\n    x\nValueError: bad "
      "row\n\n");
  CHECK(text.summary ==
        "RuntimeError: Caught ValueError in DataLoader worker process 0. ValueError: bad row");
  const FailureText remote = found(
      "multiprocessing.pool.RemoteTraceback: \n\"\"\"\nTraceback (most recent call last):\n"
      "  File \"p.py\", line 4, in work\n    x\nEOFError\n\"\"\"\n\n"
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    x\nRuntimeError: "
      "pool\n");
  CHECK(remote.summary == "RuntimeError: pool");
  CHECK(remote.consequence);
}

TEST_CASE("tracebacks that Python only notes are weaker than the one that ended it") {
  const std::string noted =
      "Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nBrokenPipeError: [Errno 32] Broken "
      "pipe\n";
  CHECK(found(kTraceback + noted).summary == "ValueError: bad batch 17");
  CHECK(found(noted).consequence);
}

TEST_CASE("the exception's message may have several lines, and ends before a logger's line") {
  const FailureText text = found(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\n"
      "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be reported later.\n"
      "2024-05-01 12:00:00 INFO bye\n");
  CHECK(text.summary == "RuntimeError: CUDA error: device-side assert triggered");
  CHECK(text.block.ends_with("reported later.\n"));
}

TEST_CASE("what the process goes on to write is not the exception's message") {
  std::string log = kTraceback;
  for (int i = 0; i < 13; ++i) log += "bye\n";
  CHECK(found(log).block == kTraceback);
}

TEST_CASE("errors in the script itself, exception groups and boxes of rich are read") {
  CHECK(found("  File \"/x/t.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n")
            .signature == "python SyntaxError: invalid syntax @ t.py:");
  const FailureText group = found(
      "  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 2, in <module>\n  | "
      "    raise g\n"
      "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | "
      "ValueError: a\n"
      "    +------------------------------------\nafter\n");
  CHECK(group.summary == "ExceptionGroup: two (2 sub-exceptions)");
  CHECK(group.block.find("after") == std::string::npos);
  const FailureText box = found(
      "╭───── Traceback (most recent call last) ─────╮\n│ /x/t.py:3 in run                            │\n"
      "│ ❱ 3   raise ValueError('x')                 │\n╰─────────────────────────────────────────────╯\n"
      "ValueError: x\n");
  CHECK(box.summary == "ValueError: x");
  CHECK(box.signature == "python ValueError: x @ t.py:run");
}

TEST_CASE("every family of failures is recognised by its own words") {
  struct Row {
    const char* log;
    FailureFamily family;
    const char* summary;
  };
  const Row rows[] = {
      {"terminate called after throwing an instance of 'std::runtime_error'\n  what():  boom\nAborted\n",
       FailureFamily::terminate, "std::runtime_error: boom"},
      {"terminate called after throwing an instance of 'int'\n", FailureFamily::terminate, "int"},
      {"terminate called without an active exception\n", FailureFamily::terminate,
       "terminate called without an active exception"},
      {"malloc(): corrupted top size\n", FailureFamily::glibc, "malloc(): corrupted top size"},
      {"free(): double free detected in tcache 2\n", FailureFamily::glibc,
       "free(): double free detected in tcache 2"},
      {"*** stack smashing detected ***: terminated\n", FailureFamily::glibc,
       "*** stack smashing detected ***: terminated"},
      {"a.out: a.c:3: main: Assertion `x == 1' failed.\n", FailureFamily::glibc,
       "a.out: a.c:3: main: Assertion `x == 1' failed."},
      {"==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x60\n#0 0x1 in f a.c:1\n\n"
       "SUMMARY: AddressSanitizer: heap-use-after-free a.c:1 in f\n==12==ABORTING\n",
       FailureFamily::sanitizer, "AddressSanitizer: heap-use-after-free on address 0x60"},
      {"Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n  File "
       "\"a.py\", line 1 in f\n",
       FailureFamily::faulthandler, "Fatal Python error: Segmentation fault"},
      {"C++ Traceback (most recent call last):\n0 f()\n\n----------------------\nError Message Summary:\n"
       "----------------------\nFatalError: `Segmentation fault` is detected by the operating system.\n",
       FailureFamily::paddle, "FatalError: `Segmentation fault` is detected by the operating system."},
      {"thread 'main' panicked at src/main.rs:2:5:\nno rows\n", FailureFamily::panic,
       "thread 'main' panicked at src/main.rs:2:5: no rows"},
      {"panic: nil map\n\ngoroutine 1 [running]:\n", FailureFamily::panic, "panic: nil map"},
      {"./a: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file "
       "or directory\n",
       FailureFamily::library,
       "./a: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file "
       "or directory"},
      {"h:1:2 [0] NCCL WARN Connect failed\nncclSystemError: socket\n", FailureFamily::device,
       "ncclSystemError: socket"},
      {"gloo: Connection closed by peer [::1]:4\n", FailureFamily::message,
       "gloo: Connection closed by peer [::1]:4"},
      {"bind: Address already in use\n", FailureFamily::message, "bind: Address already in use"},
      {"LAUNCH ERROR trainer 3 exited with 4\n---- ERROR LOG DETAIL ----\nx\nfirst failure: trainer 3 exited "
       "with 4\n  attempt 0, pid 7\n",
       FailureFamily::message, "first failure: trainer 3 exited with 4"},
      {"it failed: ERROR 5\n------ ERROR LOG DETAIL ------\n", FailureFamily::message, "it failed: ERROR 5"},
      {"usage: t.py [-h]\nt.py: error: unrecognized arguments: --x\n", FailureFamily::message,
       "t.py: error: unrecognized arguments: --x"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.log);
    const FailureText text = found("step 1\n" + std::string(row.log));
    CHECK(text.family == row.family);
    CHECK(text.summary == row.summary);
  }
  for (int i = 0; i <= static_cast<int>(FailureFamily::message); ++i)
    CHECK_FALSE(to_string(static_cast<FailureFamily>(i)).empty());
}

TEST_CASE("words about memory are noted") {
  CHECK(found("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n")
            .out_of_memory);
  CHECK(found("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nMemoryError\n")
            .out_of_memory);
  CHECK(found("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n").out_of_memory);
  CHECK_FALSE(found(kTraceback).out_of_memory);
}

TEST_CASE("a port that is taken is recognised, in every spelling") {
  CHECK(is_port_clash("OSError: [Errno 98] Address already in use"));
  CHECK(is_port_clash("bind failed: EADDRINUSE"));
  CHECK_FALSE(is_port_clash("Connection refused"));
}

TEST_CASE("failures that follow from others are told from those that do not") {
  for (const char* text :
       {"ConnectionResetError: [Errno 104] Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe", "EOFError",
        "[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:3",
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
        "Watchdog caught collective operation timeout", "KeyboardInterrupt",
        "fleetrun.Error: server 0 is gone: x"})
    CHECK_MESSAGE(is_consequence(text), text);
  for (const char* text : {"ValueError: bad batch", "RuntimeError: CUDA error: out of memory", "MemoryError",
                           "EOFError: Ran out of input", "FileNotFoundError: [Errno 2] No such file: 'x'"})
    CHECK_MESSAGE(!is_consequence(text), text);
}

TEST_CASE("what differs from run to run is folded") {
  CHECK(folded("step 12 at 0x7ffe12 pid 4711") == "step N at 0xN pid N");
  CHECK(folded("2024-05-01 12:30:45.123 rank3") == "N N rankN");
  CHECK(folded("open /tmp/tmpab12/x.bin and /dev/shm/psm_9f") == "open /tmp/*/x.bin and /tmp/*");
  CHECK(folded("id 123e4567-e89b-12d3-a456-426614174000 end") == "id N end");
  CHECK(folded("deadbeef") == "deadbeef");
  CHECK(folded("a \t b") == "a b");
}

TEST_CASE("plain text has no escapes and the last state of overwritten lines") {
  CHECK(plain_text("\x1b[1;31mred\x1b[0m\n") == "red\n");
  CHECK(plain_text("\x1b]0;title\x07text") == "text");
  CHECK(plain_text("10%\r20%\r30%\n") == "30%\n");
  CHECK(plain_text("a\r\nb\r\n") == "a\nb\n");
  CHECK(plain_text(std::string("a\0b\x07", 4)) == "ab");
  CHECK(plain_text("\x1b[") == "");
  CHECK(plain_text("\x1b") == "");
}

TEST_CASE("a huge block keeps its beginning and its end") {
  std::string log = "Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i) log += "  File \"a.py\", line 1, in deep\n    deep()\n";
  log += "RecursionError: maximum recursion depth exceeded\n";
  const FailureText text = found(log);
  CHECK(text.block.size() <= 8 * 1024 + 8);
  CHECK(text.block.starts_with("Traceback"));
  CHECK(text.block.ends_with("exceeded\n"));
}

TEST_CASE("any bytes are read without harm") {
  std::string log;
  std::uint32_t seed = 7;
  for (int round = 0; round < 200; ++round) {
    log.assign(300, '\0');
    for (char& c : log) c = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
    const std::string mixed =
        kTraceback.substr(0, seed % kTraceback.size()) + log + kTraceback.substr(seed % kTraceback.size());
    (void)find_failure(mixed);
    (void)folded(mixed);
  }
  CHECK(find_failure("Traceback (most recent call last):").has_value());
  CHECK(find_failure("Traceback (most recent call last):\n  File \"").has_value());
}
