// Curves as a picture: a panel for each name, in it a line for each trainer,
// over the batches of the training.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tools/event_series.h"
#include "runtime/tools/picture.h"

namespace fleetrun::trace {

/// Places of an axis's marks: multiples of 1, 2 or 5 times a power of ten,
/// about `wanted` of them within [low, high].
std::vector<double> ticks(double low, double high, std::size_t wanted);

/// A mark's text, with as many digits as its distance to the next one needs.
std::string tick_text(double value, double step);

/// `curves` has at least one name. width: of the picture; each panel adds to its height.
Picture plot(const Curves& curves, std::size_t width);

}  // namespace fleetrun::trace
