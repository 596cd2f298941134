// What crosses between Python and C++, and how: nanobind's own conversions, and those that it does not have.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace nb = nanobind;
using namespace nb::literals;

/// The memory of an array (PEP 3118), held while this lives.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Buffer() { PyBuffer_Release(&view_); }

  /// False, and without an error of Python's, where the object has none, or does not lend it.
  bool take(nb::handle object) noexcept;
  const Py_buffer& view() const noexcept { return view_; }
  /// Throws: Error(config) for an array with gaps, or whose axes lie in another order than C's.
  const Py_buffer& contiguous() const;

 private:
  Py_buffer view_{};  // without an object: nothing was lent
};

/// The objects of C++ that Python has, each with what owns it here. C++ may keep such an owner beyond the
/// object of Python and let go of it on any thread, without the GIL and after the interpreter has ended:
/// nanobind's own shared_ptr holds the object of Python instead. Called with the GIL.
void keep_owner(nb::handle object, std::shared_ptr<void> owner) noexcept;
/// Null where there is none.
std::shared_ptr<void> owner_of(void* object) noexcept;

/// A copy of an object of Python that any thread may let go of: under the GIL, and not after the interpreter
/// has ended.
template <class Object>
std::shared_ptr<Object> kept(Object object) {
  return {new Object(std::move(object)), [](Object* last) {
            if (Py_IsInitialized() == 0) return;
            const WithGil held;
            delete last;
          }};
}

/// A constructor of objects that are owned like that.
template <class T, class... Arguments>
auto make() {
  return nb::new_(
      [](Arguments... arguments) { return std::make_shared<T>(std::forward<Arguments>(arguments)...); });
}

}  // namespace fleetrun::python

namespace nanobind::detail {

template <class T>
struct type_caster<std::shared_ptr<T>> {
  using Caster = make_caster<T>;
  NB_TYPE_CASTER(std::shared_ptr<T>, Caster::Name)

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    Caster caster;
    if (!caster.from_python(source, flags & ~cast_flags::convert, cleanup)) return false;
    T* const object = caster.operator T*();
    if (object == nullptr) return true;
    value = std::shared_ptr<T>(fleetrun::python::owner_of(object), object);
    return value.use_count() != 0;
  }

  static handle from_cpp(const Value& value, rv_policy, cleanup_list* cleanup) noexcept {
    const std::type_info* actual = nullptr;
    if constexpr (std::is_polymorphic_v<T>) actual = value ? &typeid(*value) : nullptr;
    bool is_new = false;
    const handle result = NB_CALL(nb_type_put)(NB_CTX_C(cleanup), &typeid(T), actual, value.get(),
                                               rv_policy::reference, cleanup, &is_new);
    if (is_new) fleetrun::python::keep_owner(result, value);
    return result;
  }
};

template <>
struct type_caster<fleetrun::python::Buffer> {
  NB_TYPE_CASTER(fleetrun::python::Buffer, const_name("numpy.ndarray"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept { return value.take(source); }
};

}  // namespace nanobind::detail
