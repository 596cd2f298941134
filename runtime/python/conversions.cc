#include "runtime/python/conversions.h"

#include <unordered_map>

#include "runtime/base/error.h"

namespace fleetrun::python {

namespace {

/// Never destroyed: what Python still has when it ends is left alone.
std::unordered_map<void*, std::shared_ptr<void>>& owners() {
  static auto* const all = new std::unordered_map<void*, std::shared_ptr<void>>;
  return *all;
}

}  // namespace

bool Buffer::take(nb::handle object) noexcept {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  PyBuffer_Release(&view_);
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0) return true;
  PyErr_Clear();
  return false;
}

const Py_buffer& Buffer::contiguous() const {
  if (PyBuffer_IsContiguous(&view_, 'C') == 0)
    throw Error(ErrorKind::config, "the array is not contiguous", "make a copy with numpy.ascontiguousarray");
  return view_;
}

void keep_owner(nb::handle object, std::shared_ptr<void> owner) noexcept {
  void* const place = owner.get();
  owners()[place] = std::move(owner);
  nb::keep_alive_cb(object, place, [](void* gone) noexcept {
    const auto last = owners().extract(gone);  // whose end may be that of others
  });
}

std::shared_ptr<void> owner_of(void* object) noexcept {
  const auto found = owners().find(object);
  return found == owners().end() ? nullptr : found->second;
}

}  // namespace fleetrun::python
