// Loads a checkpoint of Paddle's and writes it again, for tests/oracles/paddle_checkpoint.py:
// ps_paddle_rewrite FROM TO WIDTH DENSE, a table of WIDTH columns and DENSE dense values, trained by Adam.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "ps/saving/paddle_checkpoint.h"
#include "runtime/base/error.h"

int main(int argc, char** argv) {
  using namespace fleetrun::ps;
  if (argc != 5) return 2;
  TableConfig rows;
  rows.id = 0;
  rows.name = "rows";
  rows.kind = TableConfig::Kind::sparse;
  rows.width = std::strtoull(argv[3], nullptr, 10);
  rows.rule.kind = UpdateRule::Kind::pow_adam;
  rows.accessor.kind = Accessor::Kind::sparse;
  TableConfig dense;
  dense.id = 1;
  dense.name = "dense";
  dense.width = std::strtoull(argv[4], nullptr, 10);
  dense.rule.kind = UpdateRule::Kind::adam;
  const std::vector<TableConfig> tables{rows, dense};
  try {
    if (!is_paddle_checkpoint(argv[1]))
      throw fleetrun::Error(fleetrun::ErrorKind::data, "no checkpoint of Paddle's");
    std::shared_ptr<TableSet> set = load_paddle_checkpoint(argv[1], {}, tables).tables;
    save_paddle_checkpoint(argv[2], tables, TableCut(set, tables));
  } catch (const fleetrun::Error& error) {
    std::fputs(fleetrun::render(error, "ps_paddle_rewrite").c_str(), stderr);
    return 1;
  }
}
