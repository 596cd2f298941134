// Files that trainers share: whoever is done takes the next one.

#include <memory>
#include <optional>
#include <string>

#include "dataset/base/file_queue.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"

namespace fleetrun::python {

void bind_file_queue(nb::module_& module) {
  using dataset::FileQueue;
  nb::class_<FileQueue>(module, "FileQueue", "Files that trainers share.")
      .def(
          "next",
          [](const std::shared_ptr<FileQueue>& self) {
            const auto file = std::make_shared<std::optional<std::string>>();
            run_interruptibly([self, file] { *file = self->next(); });
            return *file;
          },
          "The next file, done when next() is called again; None when all are done. Throws: Error(host).");
  module.def(
      "shared_file_queue",
      [](std::vector<std::string> files, const std::string& claims, std::uint16_t owner) {
        return std::shared_ptr<FileQueue>(dataset::make_shared_queue(std::move(files), claims, owner));
      },
      "files"_a, "claims"_a, "owner"_a = 0,
      "The queue of these files whose claims lie at the path `claims`. owner: not 0, another process of "
      "which "
      "goes on with the file that it had. Throws: Error(host).");
}

}  // namespace fleetrun::python
