// fleetrun._native: the module, and how a C++ error becomes fleetrun.Error.

#include <exception>
#include <string>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/python/bindings.h"

namespace fleetrun::python {

namespace {

void raise_in_python(const Error& error) {
  const nb::object type = nb::module_::import_("fleetrun._error").attr("Error");
  const nb::object instance = type(to_string(error.kind()), error.what(), error.hint(), error.context());
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void translate(const std::exception_ptr& raised, void*) {
  try {
    std::rethrow_exception(raised);
  } catch (const Error& error) {
    raise_in_python(error);
  } catch (const std::system_error& error) {  // of std::thread: what else fails is an Error
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    raise_in_python(Error(ErrorKind::host, "a thread cannot be started: " + error.code().message(),
                          "raise the limit on processes (ulimit -u, or the container's), or start fewer"));
  }
}

}  // namespace

}  // namespace fleetrun::python

NB_MODULE(_native, module) {
  nanobind::set_leak_warnings(false);  // what a script has at its end is left alone
  module.doc() =
      "The engine, the dataset readers, the parameter server and collectives. Used by the Python files "
      "beside it.";
  nanobind::register_exception_translator(fleetrun::python::translate);
  fleetrun::python::bind_arrays(module);
  fleetrun::python::bind_engine(module);
  fleetrun::python::bind_file_queue(module);
  fleetrun::python::bind_tables(module);
  fleetrun::python::bind_ps(module);
  fleetrun::python::bind_ps_arrays(module);
  fleetrun::python::bind_dataset(module);
  fleetrun::python::bind_training(module);
  fleetrun::python::bind_batches(module);
  fleetrun::python::bind_memory_dataset(module);
  fleetrun::python::bind_columnar(module);
  fleetrun::python::bind_collective(module);
  fleetrun::python::bind_collective_training(module);
  fleetrun::python::bind_replicas(module);
}
