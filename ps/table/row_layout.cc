#include "ps/table/row_layout.h"

#include "ps/table/update_rule.h"

namespace fleetrun::ps {

RowLayout::RowLayout(const TableConfig& config)
    : statistics(config.accessor.kind == Accessor::Kind::plain ? 0 : sizeof(Statistics) / sizeof(float)),
      width(config.width),
      floats(statistics + width) {
  const auto add = [this](Part& part, const UpdateRule& rule) {
    const Updater updater(rule);
    part.state = floats;
    part.state_floats = updater.state_floats(part.width);
    floats += part.state_floats;
    if (updater.counts_steps()) part.steps = floats++;
  };
  const bool is_split = statistics != 0;
  parts[0].width = is_split ? 1 : width;
  add(parts[0], is_split ? config.accessor.embed_rule.value_or(config.rule) : config.rule);
  if (is_split && width > 1) {
    part_count = 2;
    parts[1].column = 1;
    parts[1].width = width - 1;
    add(parts[1], config.rule);
  }
  if (config.expire_seconds != 0) touched = floats++;
}

}  // namespace fleetrun::ps
