// What a pass over a dataset is told from Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/python/conversions.h"
#include "runtime/trainer/dataset_trainer.h"

namespace fleetrun::python {

/// The options that every kind of pass has; `print_line` gets the lines, and each batch is a sign of life.
runtime::EpochOptions epoch_options(std::vector<std::string> fetch, std::vector<std::string> fetch_info,
                                    std::int64_t print_period, const nb::callable& print_line);

/// Whether FLAGS_check_nan_inf is on.
bool checks_values();

}  // namespace fleetrun::python
