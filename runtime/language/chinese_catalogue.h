// The Chinese of zh_CN/*.po, as Translator takes it; po.py makes the source when the program is built.
#pragma once

#include <string_view>

namespace fleetrun {

std::string_view chinese_catalogue() noexcept;

}  // namespace fleetrun
