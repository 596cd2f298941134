// fleetrun._multi_slot_text: samples of a data generator to MultiSlot text, for those that are plain. What is
// not (other types, a subclass, a mistake) is left to Python, which knows every rule and words the errors.
//
// A module of its own, without the engine: a pipe command is started once per data file.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "dataset/text/number_print.h"

namespace {

namespace nb = nanobind;

/// Text that grows.
class Text {
 public:
  /// Where `bytes` may be written; ends_at() says how far they were.
  char* room(std::size_t bytes) {
    if (bytes_.size() - used_ < bytes) bytes_.resize(2 * bytes_.size() + bytes);
    return bytes_.data() + used_;
  }
  void ends_at(const char* end) noexcept { used_ = static_cast<std::size_t>(end - bytes_.data()); }
  void append(std::string_view piece) {
    char* out = room(piece.size());
    std::memcpy(out, piece.data(), piece.size());
    ends_at(out + piece.size());
  }
  void append_count(Py_ssize_t count) {
    char* out = room(fleetrun::dataset::kNumberBytes + 2);
    ends_at(fleetrun::dataset::print_unsigned(out, static_cast<std::size_t>(count)));
  }
  void append(char byte) {
    char* out = room(1);
    *out = byte;
    ends_at(out + 1);
  }
  std::size_t size() const noexcept { return used_; }
  void cut(std::size_t size) noexcept { used_ = size; }
  std::string_view view() const noexcept { return {bytes_.data(), used_}; }

 private:
  std::string bytes_ = std::string(16384, '\0');
  std::size_t used_ = 0;
};

// In the stable ABI functions, in the version's own macros. A sequence is a list or a tuple.
Py_ssize_t size_of(PyObject* sequence) {
  return PyList_CheckExact(sequence) ? NB_LIST_GET_SIZE(sequence) : NB_TUPLE_GET_SIZE(sequence);
}
PyObject* item_of(PyObject* sequence, Py_ssize_t index) {
  return PyList_CheckExact(sequence) ? NB_LIST_GET_ITEM(sequence, index) : NB_TUPLE_GET_ITEM(sequence, index);
}

/// The pair (name, elements) of a slot; false when it is not a tuple or list of two,
/// a str and a list that is not empty.
bool take_pair(PyObject* item, PyObject*& name, PyObject*& elements) {
  if (!PyTuple_CheckExact(item) && !PyList_CheckExact(item)) return false;
  if (size_of(item) != 2) return false;
  name = item_of(item, 0);
  elements = item_of(item, 1);
  return PyUnicode_CheckExact(name) && PyList_CheckExact(elements) && NB_LIST_GET_SIZE(elements) > 0;
}

bool is_same(PyObject* a, PyObject* b) {
  return a == b || PyUnicode_Compare(a, b) == 0;
}

/// An int, bool or float as str() shows it; false for every other type and for ints of more than 64 bits.
bool append_number(Text& text, PyObject* element) {
  char* out = text.room(fleetrun::dataset::kNumberBytes + 1);
  *out++ = ' ';
  if (PyFloat_CheckExact(element)) {
    text.ends_at(fleetrun::dataset::print_double(out, PyFloat_AsDouble(element)));
    return true;
  }
  if (!PyLong_CheckExact(element)) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(element, &overflow);
  if (overflow != 0) return false;
  text.ends_at(fleetrun::dataset::print_signed(out, value));
  return true;
}

/// One slot of numbers. The slot is `proto`[index], ("name", "uint64" or "float"),
/// and becomes a float slot with the first float.
bool append_numbers(Text& text, PyObject* item, PyObject* proto, Py_ssize_t index) {
  PyObject *name, *elements;
  if (!take_pair(item, name, elements)) return false;
  PyObject* expected = NB_LIST_GET_ITEM(proto, index);
  if (!PyTuple_CheckExact(expected) || NB_TUPLE_GET_SIZE(expected) != 2) return false;
  if (!PyUnicode_Check(NB_TUPLE_GET_ITEM(expected, 0)) || !is_same(name, NB_TUPLE_GET_ITEM(expected, 0)))
    return false;
  text.append_count(NB_LIST_GET_SIZE(elements));
  bool any_float = false;
  for (Py_ssize_t i = 0; i < NB_LIST_GET_SIZE(elements); ++i) {
    PyObject* element = NB_LIST_GET_ITEM(elements, i);
    if (!append_number(text, element)) return false;
    any_float = any_float || PyFloat_CheckExact(element);
  }
  if (any_float && PyUnicode_CompareWithASCIIString(NB_TUPLE_GET_ITEM(expected, 1), "float") != 0) {
    PyObject* changed = Py_BuildValue("(Os)", name, "float");
    if (!changed) nb::raise_python_error();
    PyList_SetItem(proto, index, changed);
  }
  return true;
}

bool append_strings(Text& text, PyObject* item) {
  PyObject *name, *elements;
  if (!take_pair(item, name, elements)) return false;
  text.append_count(NB_LIST_GET_SIZE(elements));
  for (Py_ssize_t i = 0; i < NB_LIST_GET_SIZE(elements); ++i) {
    PyObject* element = NB_LIST_GET_ITEM(elements, i);
    if (!PyUnicode_CheckExact(element)) return false;
    Py_ssize_t bytes = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(element, &bytes);
    if (!utf8) {  // a lone surrogate
      PyErr_Clear();
      return false;
    }
    text.append(' ');
    text.append(std::string_view(utf8, static_cast<std::size_t>(bytes)));
  }
  return true;
}

/// The list or tuple that samples[index] is; a zip becomes a list there. nullptr for anything else.
PyObject* slots_at(PyObject* samples, Py_ssize_t index) {
  PyObject* sample = NB_LIST_GET_ITEM(samples, index);
  if (PyList_CheckExact(sample) || PyTuple_CheckExact(sample)) return sample;
  if (Py_TYPE(sample) != &PyZip_Type) return nullptr;
  PyObject* slots = PySequence_List(sample);
  if (!slots) nb::raise_python_error();
  PyList_SetItem(samples, index, slots);
  return slots;
}

/// samples[start:] as text, up to the first that is not plain: (text, its index).
/// `append(sample, item, i)` writes a slot.
template <class Append>
nb::tuple join(const nb::list& samples, Py_ssize_t start, Py_ssize_t width, const Append& append) {
  Text text;
  Py_ssize_t at = start;
  for (; at < NB_LIST_GET_SIZE(samples.ptr()); ++at) {
    const std::size_t before = text.size();
    PyObject* slots = slots_at(samples.ptr(), at);
    bool plain = slots && (width < 0 || size_of(slots) == width);
    for (Py_ssize_t i = 0; plain && i < size_of(slots); ++i) {
      if (i > 0) text.append(' ');
      plain = append(text, item_of(slots, i), i);
    }
    if (!plain) {
      text.cut(before);
      break;
    }
    text.append('\n');
  }
  const std::string_view all = text.view();
  return nb::make_tuple(nb::str(all.data(), all.size()), at);
}

}  // namespace

NB_MODULE(_multi_slot_text, module) {
  nb::set_leak_warnings(false);
  module.doc() = "MultiSlot text of samples, without the engine: for pipe commands.";
  module.def(
      "join_numbers",
      [](const nb::list& samples, Py_ssize_t start, const nb::list& proto) {
        return join(samples, start, NB_LIST_GET_SIZE(proto.ptr()),
                    [&](Text& text, PyObject* item, Py_ssize_t i) {
                      return append_numbers(text, item, proto.ptr(), i);
                    });
      },
      nb::arg("samples"), nb::arg("start"), nb::arg("proto"),
      "(text, place): the lines of samples from `start` on, up to the first that Python has to look at "
      "itself. "
      "proto: [(name, type)] of the slots.");
  module.def(
      "join_strings",
      [](const nb::list& samples, Py_ssize_t start) {
        return join(samples, start, -1,
                    [](Text& text, PyObject* item, Py_ssize_t) { return append_strings(text, item); });
      },
      nb::arg("samples"), nb::arg("start"), "The same for values that are text already.");
}
