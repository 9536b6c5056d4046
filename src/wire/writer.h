// Writes described messages, in the order of their description, without a tree: answers and long
// lists. Small messages with sorted keys: wire/tree.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "base/json_writer.h"
#include "model/job_spec_json.h"
#include "wire/describe.h"

namespace berth::wire {

/// A list leaves out scripts and environments; so does a view for somebody else's eyes. A brief one
/// also leaves out what is 0, empty or null, unless its description says otherwise.
enum class Detail : std::uint8_t { Full, WithoutScriptAndEnvironment, Brief };

template <class Out>
class Writer {
 public:
  explicit Writer(Out& out, Detail detail = Detail::Full) : out_(out), detail_(detail) {}

  /// A field: what a description calls.
  template <class T>
  void operator()(std::string_view key, T&& place, std::string_view = {}) {
    put(key, as_field(std::forward<T>(place)), is_brief_);
  }

  template <class T>
  void write(const T& value) {
    if constexpr (Named<T>)
      out_.value(name_of(value));
    else if constexpr (Described<T>)
      write_object(value, false);
    else
      out_.value(value);
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      out_.null();
  }
  template <class T>
  void write(const std::vector<T>& list) {
    out_.begin_array();
    for (const T& item : list) write(item);
    out_.end_array();
  }
  template <class T, std::size_t kSize>
  void write(const std::array<T, kSize>& tuple) {
    out_.begin_array();
    for (const T& item : tuple) write(item);
    out_.end_array();
  }
  template <class T>
  void write(const std::vector<std::pair<std::string, T>>& list) {
    write_map(list);
  }
  template <class T>
  void write(const std::map<std::string, T>& map) {
    write_map(map);
  }
  /// Measures among them to thousandths; whole ones without a point, as people write them.
  template <class... T>
  void write(const std::variant<T...>& either) {
    const auto* measure = std::get_if<double>(&either);
    if (measure == nullptr) return std::visit([&](const auto& value) { write(value); }, either);
    const double milli = std::round(*measure * 1000);
    if (std::fmod(milli, 1000) == 0 && std::abs(milli) < 1e15)
      write(static_cast<std::int64_t>(milli / 1000));
    else
      write(milli / 1000);
  }
  /// Jobs of an array stand together and have one request, the text of which may name ten thousand
  /// indices: it is made once.
  void write(const std::shared_ptr<const JobSpec>& spec) {
    if (spec == nullptr) return out_.null(), void();
    if (spec.get() != last_spec_) {
      JsonWriter text;
      write_json(text, *spec,
                 detail_ == Detail::Full    ? SpecPart::Whole
                 : detail_ == Detail::Brief ? SpecPart::Brief
                                            : SpecPart::WithoutScriptAndEnvironment);
      last_text_ = text.take();
      last_spec_ = spec.get();
    }
    out_.raw(last_text_);
  }

 private:
  template <class T>
  void write_object(const T& value, bool is_brief) {
    const bool outer = std::exchange(is_brief_, is_brief);
    out_.begin_object();
    Fields<T>::visit(value, *this);
    out_.end_object();
    is_brief_ = outer;
  }
  template <class Map>
  void write_map(const Map& map) {
    out_.begin_object();
    for (const auto& [key, value] : map) {
      out_.key(key);
      write(value);
    }
    out_.end_object();
  }

  // `skips`: nothing is written of what is 0, empty or null.
  template <class T>
  void put(std::string_view key, Plain<T> field, bool skips) {
    if (skips && is_none(field.value)) return;
    out_.key(key);
    write(field.value);
  }
  /// A list of rows whose brief form has fewer fields.
  template <class T>
  requires Described<T>
  void put(std::string_view key, Plain<const std::vector<T>> field, bool skips) {
    if (skips && field.value.empty()) return;
    out_.key(key);
    out_.begin_array();
    for (const T& row : field.value) write_object(row, is_brief_row<T>());
    out_.end_array();
  }
  template <class T>
  [[nodiscard]] bool is_brief_row() const {
    if constexpr (requires { Fields<T>::kHasBriefRows; })
      return detail_ == Detail::Brief;
    else
      return false;
  }
  template <class T>
  void put(std::string_view key, const OrNull<T>& field, bool skips) {
    if (skips && field.value == field.none) return;
    out_.key(key);
    if (field.value == field.none)
      out_.null();
    else
      write(field.value);
  }
  template <class E, class T>
  void put(std::string_view key, WordOf<E, T> field, bool skips) {
    put(key, OrNull<T>{field.value, {}}, skips);
  }
  template <class T>
  void put(std::string_view key, IfAny<T> field, bool) {
    put(key, Plain<T>{field.value}, true);
  }
  template <class T>
  void put(std::string_view key, ByName<T> field, bool) {
    out_.key(key);
    out_.begin_object();
    for (std::size_t i = 0; i < field.names.size(); ++i) {
      out_.key(field.names[i]);
      write(field.values[i]);
    }
    out_.end_object();
  }
  template <class T>
  void put(std::string_view key, Indices<T> field, bool skips) {
    if (skips && field.value.empty()) return;
    out_.key(key);
    out_.value(to_text(ArraySpec{.indices = field.value, .at_once = 0}));
  }
  /// Known words and bounds are for readers; what a request does not name is left out.
  template <class Case>
  void put(std::string_view key, const Case& field, bool skips) {
    constexpr bool kMayBeOut = requires { field.value.has_value(); };
    put(key, as_field(field.value), skips || kMayBeOut);
  }
  template <class T>
  void put(std::string_view key, AtMost<T> field, bool) {
    put(key, Plain<T>{field.value}, true);
  }
  template <class T>
  void put(std::string_view key, OneOrMany<T> field, bool) {
    put(key, Plain<T>{field.value}, true);
  }
  template <class Field>
  void put(std::string_view key, Needed<Field> field, bool) {
    put(key, field.field, false);
  }
  template <class Field>
  void put(std::string_view key, Kept<Field> field, bool skips) {
    if (!skips || field.makes_sense) put(key, field.field, false);
  }
  template <class Field>
  void put(std::string_view key, NotBrief<Field> field, bool skips) {
    if (!skips) put(key, field.field, false);
  }
  template <class Field>
  void put(std::string_view key, OnlyBrief<Field> field, bool skips) {
    if (skips) put(key, field.field, true);
  }
  void put(std::string_view key, Constant field, bool) {
    out_.key(key);
    out_.value(field.text);
  }
  template <class Rows, class Get>
  void put(std::string_view key, Column<Rows, Get> field, bool) {
    out_.key(key);
    out_.begin_array();
    for (const auto& row : field.rows) write(field.get(row));
    out_.end_array();
  }
  template <class T, class Rows>
  void put(std::string_view key, const ByTable<T, Rows>& field, bool) {
    if (!key.empty()) {
      out_.key(key);
      out_.begin_object();
    }
    for (const auto& row : field.rows) {
      out_.key(row.name);
      write(field.object.*row.field);
    }
    if (!key.empty()) out_.end_object();
  }

  Out& out_;
  Detail detail_;
  bool is_brief_ = false;
  const JobSpec* last_spec_ = nullptr;
  std::string last_text_;
};

/// In the order of its description.
template <Described T>
[[nodiscard]] std::string to_json(const T& message, Detail detail = Detail::Full) {
  JsonWriter out;
  Writer<JsonWriter>(out, detail).write(message);
  return out.take();
}
}  // namespace berth::wire
