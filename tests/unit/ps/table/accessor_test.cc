#include "ps/table/accessor.h"

#include <doctest/doctest.h>

using namespace fleetrun::ps;

namespace {

Accessor ctr() {
  Accessor out;
  out.kind = Accessor::Kind::ctr;
  out.nonclk_coeff = 0.2f;
  out.click_coeff = 1.0f;
  out.base_threshold = 1.5f;
  out.delta_threshold = 0.25f;
  out.delta_keep_days = 16.0f;
  out.show_click_decay_rate = 0.5f;
  out.delete_threshold = 0.8f;
  out.delete_after_unseen_days = 30.0f;
  return out;
}

Statistics of(float show, float click, float delta, std::uint16_t days) {
  Statistics out;
  out.show = show;
  out.click = click;
  out.delta_score = delta;
  out.set_unseen_days(days);
  return out;
}

}  // namespace

TEST_CASE("a score counts clicks and shows without a click") {
  // Source: Paddle's ctr_accessor test.
  CHECK(score_of(ctr(), 10.0f, 6.0f) == doctest::Approx(6.8));
}

TEST_CASE("unseen days and the mark of an extended row share a word") {
  Statistics statistics;
  CHECK(statistics.slot == Statistics::kNoSlot);
  CHECK(!statistics.is_extended());
  statistics.set_unseen_days(7);
  statistics.set_extended(true);
  CHECK(statistics.unseen_days() == 7);
  CHECK(statistics.is_extended());
  statistics.set_unseen_days(40000);
  CHECK(statistics.unseen_days() == Statistics::kMaxDays);
  CHECK(statistics.is_extended());
  statistics.set_extended(false);
  CHECK(statistics.unseen_days() == Statistics::kMaxDays);
}

TEST_CASE("a save takes rows by score, by what has changed, and by age") {
  const Statistics good = of(10, 6, 0.25f, 16);
  for (const SaveMode mode : {SaveMode::all, SaveMode::delta, SaveMode::base, SaveMode::checkpoint}) {
    CHECK(should_save(ctr(), good, mode));
  }
  const Statistics unchanged = of(10, 6, 0.24f, 16);
  CHECK(!should_save(ctr(), unchanged, SaveMode::delta));
  CHECK(should_save(ctr(), unchanged, SaveMode::base));
  for (const Statistics& poor : {of(7, 0, 9, 0), of(10, 6, 9, 17)}) {
    CHECK(!should_save(ctr(), poor, SaveMode::delta));
    CHECK(!should_save(ctr(), poor, SaveMode::base));
    CHECK(should_save(ctr(), poor, SaveMode::all));
    CHECK(should_save(ctr(), poor, SaveMode::checkpoint));
  }
  CHECK(should_save(Accessor{}, of(0, 0, 0, 99), SaveMode::delta));
}

TEST_CASE("a delta's score is spent once it is saved, but for what came since; a checkpoint is a day") {
  const auto noted = [](const Statistics& saved, SaveMode mode, Statistics now) {
    note_saved(ctr(), saved, mode, now);
    return now;
  };
  const Statistics saved = of(10, 6, 3, 2);
  CHECK(noted(saved, SaveMode::all, saved) == saved);
  for (const SaveMode mode : {SaveMode::delta, SaveMode::base}) {
    CHECK(noted(saved, mode, saved) == of(10, 6, 0, 2));
    CHECK(noted(saved, mode, of(12, 6, 3.5f, 0)).delta_score == doctest::Approx(0.5));
    CHECK(noted(of(1, 0, 3, 2), mode, of(1, 0, 3, 2)) == of(1, 0, 3, 2));
  }
  CHECK(noted(saved, SaveMode::checkpoint, saved) == of(10, 6, 3, 3));
}

TEST_CASE("rows expire by a score that decays, or by age") {
  Statistics statistics = of(20, 6, 0, 30);
  CHECK(!decay(ctr(), statistics));
  CHECK(statistics.show == 10.0f);
  CHECK(statistics.click == 3.0f);
  Statistics old = of(20, 6, 0, 31);
  CHECK(decay(ctr(), old));
  Statistics poor = of(7, 0, 0, 0);
  CHECK(decay(ctr(), poor));
}

TEST_CASE("a push adds its shows and clicks, names the slot, and is seen today") {
  Statistics now = of(1, 0, 0.5f, 9);
  note_push(ctr(), 2.0f, 1.0f, 5, now);
  CHECK(now.show == 3.0f);
  CHECK(now.click == 1.0f);
  CHECK(now.delta_score == doctest::Approx(1.7));
  CHECK(now.slot == 5);
  CHECK(now.unseen_days() == 0);
}
