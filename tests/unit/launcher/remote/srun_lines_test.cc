#include "launcher/remote/srun_lines.h"

#include <doctest/doctest.h>

#include "launcher/remote/srun_fan_out.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

using remote::Addressed;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

std::vector<Addressed> frames_of(const std::string& bytes) {
  remote::ChannelDecoder decoder(remote::kLongestReport, true);
  decoder.append(bytes);
  std::vector<Addressed> frames;
  while (auto frame = decoder.next()) frames.push_back(std::move(*frame));
  return frames;
}

std::string agent(const std::string& output) {
  return std::string(remote::kMarker) + encode(Addressed{0, remote::Hello{1, "0.1", "", "h"}}) +
         encode(Addressed{0, remote::Output{output}});
}

}  // namespace

TEST_CASE("what agents say through srun arrives whole, by host, however its lines are mixed") {
  const std::string big(5000, '\n'), other("\0~1 x\n\xff", 7);
  const auto first = lines_of(srun_lines(0, agent(big)));
  const auto second = lines_of(srun_lines(1, agent(other)));
  std::string mixed = "a profile says hello\n";
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) mixed += first[i];
    if (i < second.size()) mixed += second[i];
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, mixed.size()}) {
    SrunMerger merger(2);
    std::string bytes;
    for (std::size_t at = 0; at < mixed.size(); at += step) bytes += merger.merge(mixed.substr(at, step));
    const auto frames = frames_of(bytes);
    REQUIRE(frames.size() == 4);
    std::string of_first, of_second;
    for (const Addressed& frame : frames) {
      if (const auto* output = std::get_if<remote::Output>(&frame.message))
        (frame.host == 0 ? of_first : of_second) += output->bytes;
    }
    CHECK(of_first == big);
    CHECK(of_second == other);
  }
}

TEST_CASE("no line is longer than srun keeps whole") {
  for (const std::size_t size : {1, 719, 720, 721, 100'000}) {
    for (const std::string& line : lines_of(srun_lines(65'535, std::string(size, 'x'))))
      CHECK(line.size() <= kLongestSrunLine);
  }
  CHECK(srun_lines(3, "").empty());
}

TEST_CASE("lines that no agent wrote end the channel") {
  for (const char* bad : {"~2 AAAA\n", "~-1 AAAA\n", "~0 A?\n", "~0 AAA\n"}) {
    CAPTURE(bad);
    SrunMerger merger(2);
    CHECK_THROWS_WITH_AS(merger.merge(bad), doctest::Contains("srun passed on a line that no agent wrote"),
                         Error);
  }
  SrunMerger merger(1);
  CHECK(merger.merge(std::string(3 << 20, 'x')).empty());  // no end of a line: nothing is kept for it
  CHECK(merger.merge("\n~x y\n~ z\n").empty());
}

TEST_CASE("one srun starts an agent on each host") {
  SlurmAllocation allocation;
  allocation.hosts = {"n1", "n2", "n3"};
  const auto all = srun_command(allocation, 3);
  CHECK(all.front() == "srun");
  for (const char* word :
       {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--kill-on-bad-exit=0", "--input=all"})
    CHECK(std::find(all.begin(), all.end(), word) != all.end());
  CHECK(srun_command(allocation, 2).back() == "--nodelist=n1,n2");
  allocation.components = 2;
  CHECK_THROWS_WITH_AS(srun_command(allocation, 3), doctest::Contains("its 2 components have 3 hosts"),
                       Error);
}

TEST_CASE("why srun started nothing is said in its own words") {
  CHECK(
      explain_srun(1, "srun: error: Unable to create step for job 5: Job/step already completing\n").reason ==
      "srun ended with 1: srun: error: Unable to create step for job 5: Job/step already completing");
  CHECK(explain_srun(
            2,
            "slurmstepd: error: execve(): /x/fleetrun: No such file or directory\nsrun: error: n1: task 0: "
            "Exited with exit code 2\n")
            .hint == "install it at the same path on all hosts, or name it with --path");
  CHECK(explain_srun(137, "").reason == "srun ended with 137");
  CHECK(explain_srun(1, "srun: error: Unable to confirm allocation for job 5: Invalid job id specified\n")
            .hint == "where the allocation is gone, `env -u SLURM_JOB_ID fleetrun …` does not look at it");
}

}  // namespace fleetrun::launcher
