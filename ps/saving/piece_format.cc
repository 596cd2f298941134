#include "ps/saving/piece_format.h"

#include "ps/table/row_layout.h"
#include "ps/table/update_rule.h"

namespace fleetrun::ps {

TableHead table_head_of(const TableConfig& config) {
  TableHead head;
  head.id = config.id;
  head.kind = static_cast<std::uint32_t>(config.kind);
  head.rule = static_cast<std::uint32_t>(config.rule.kind);
  head.width = config.width;
  head.min_block = config.min_block;
  if (config.kind == TableConfig::Kind::dense) {
    head.floats = static_cast<std::uint32_t>(Updater(config.rule).dense_state_floats());
    return head;
  }
  head.floats = static_cast<std::uint32_t>(RowLayout(config).floats);
  head.has_seconds = config.expire_seconds != 0 ? 1 : 0;
  head.admission = static_cast<std::uint32_t>(config.admission.kind);
  head.accessor = static_cast<std::uint32_t>(config.accessor.kind);
  if (config.accessor.embed_rule)
    head.embed_rule = 1 + static_cast<std::uint32_t>(config.accessor.embed_rule->kind);
  return head;
}

}  // namespace fleetrun::ps
