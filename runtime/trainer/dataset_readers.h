// An epoch over a dataset: its readers, started and stopped.
#pragma once

#include <memory>

#include "dataset/base/batch_source.h"
#include "runtime/base/timeline.h"

namespace fleetrun::runtime {

class DatasetReaders {
 public:
  /// `dataset` is borrowed. in_turn: as BatchSource::start(). `timeline` may be null.
  DatasetReaders(dataset::BatchSource& dataset, bool in_turn, const std::shared_ptr<Timeline>& timeline)
      : dataset_(dataset) {
    dataset_.draw_on(timeline);
    dataset_.start(in_turn);
  }
  ~DatasetReaders() {
    dataset_.stop();
    dataset_.draw_on(nullptr);
  }
  DatasetReaders(const DatasetReaders&) = delete;
  DatasetReaders& operator=(const DatasetReaders&) = delete;

 private:
  dataset::BatchSource& dataset_;
};

}  // namespace fleetrun::runtime
