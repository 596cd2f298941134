#include "ps/durable/move_note.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

TEST_CASE("a note is read as it was written, in the same run alone") {
  const TempDir directory;
  const MoveNotes notes(directory.path().string(), 7);
  CHECK_FALSE(notes.read(kHostNote, "run-0"));
  const MoveNote note{3, 18'446'744'073'709'551'615u, "run-0"};
  notes.write(kHostNote, {1, 0, "run-0"});
  notes.write(kHostNote, note);
  CHECK(notes.read(kHostNote, "run-0") == note);
  CHECK_FALSE(notes.read(kHostNote, "run-1"));
  CHECK_FALSE(notes.read(kWantedNote, "run-0"));
  CHECK_FALSE(MoveNotes(directory.path().string(), 0).read(kHostNote, "run-0"));
  notes.write(kHostNote, {3, 1, ""});
  CHECK(notes.read(kHostNote, "") == MoveNote{3, 1, ""});
  notes.remove(kHostNote);
  CHECK_FALSE(notes.read(kHostNote, ""));
  directory.write("host-7", "half a no");
  CHECK_FALSE(notes.read(kHostNote, ""));
}

TEST_CASE("the number of processes is a number from 1") {
  const TempDir directory;
  CHECK(read_process_count(directory.write("processes", "5\n")) == 5);
  for (const char* text : {"", "0\n", "-1\n", "five\n"}) {
    const std::string path = directory.write("processes", text);
    CHECK(text_of([&] { read_process_count(path); }) ==
          path + " does not say how many server processes there are to be");
  }
}
