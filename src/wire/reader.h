// Reads described messages. Reader is tolerant, for whoever hears another program of another age:
// keys that are missing or make no sense leave what was there, unknown ones are passed over.
// StrictReader is for requests: every value goes through a source that knows the limits of values,
// and how to complain.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/job_spec_json.h"
#include "wire/describe.h"

namespace berth::wire {

class Reader {
 public:
  /// Of what is no object nothing is read.
  explicit Reader(const nlohmann::json& from) : from_(from) {}

  template <class T>
  void operator()(std::string_view key, T&& place, std::string_view = {}) {
    if (!from_.is_object()) return;
    if (key.empty()) return take_case(from_, as_field(std::forward<T>(place)));
    const auto found = from_.find(key);
    if (found != from_.end()) take_case(*found, as_field(std::forward<T>(place)));
  }

  /// Whether it could be made one.
  template <class T>
  static bool take(const nlohmann::json& from, T& to) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!from.is_boolean()) return false;
      to = from.get<bool>();
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!from.is_number() || !fits<T>(from)) return false;
      to = from.get<T>();
    } else if constexpr (Named<T>) {
      return take_name(from, to);
    } else {
      static_assert(Described<T>, "describe it (wire/describe.h)");
      if (!from.is_object()) return false;
      Reader reader(from);
      Fields<T>::visit(to, reader);
    }
    return true;
  }
  static bool take(const nlohmann::json& from, std::string& to) {
    if (from.is_string()) to = from.get<std::string>();
    return from.is_string();
  }
  template <class T>
  static bool take(const nlohmann::json& from, std::optional<T>& to) {
    T value{};
    if (!take(from, value)) return false;
    to = std::move(value);
    return true;
  }
  /// Without the rows that make no sense.
  template <class T>
  static bool take(const nlohmann::json& from, std::vector<T>& to) {
    if (!from.is_array()) return false;
    to.reserve(to.size() + from.size());
    for (const nlohmann::json& item : from) {
      T value{};
      if (take(item, value)) to.push_back(std::move(value));
    }
    return true;
  }
  template <class T, std::size_t kSize>
  static bool take(const nlohmann::json& from, std::array<T, kSize>& to) {
    if (!from.is_array() || from.size() != kSize) return false;
    for (std::size_t i = 0; i < kSize; ++i)
      if (!take(from[i], to[i])) return false;
    return true;
  }
  template <class T>
  static bool take(const nlohmann::json& from, std::vector<std::pair<std::string, T>>& to) {
    if (!from.is_object()) return false;
    for (const auto& [key, item] : from.items()) {
      T value{};
      if (take_any(item, value)) to.emplace_back(key, std::move(value));
    }
    return true;
  }
  template <class T>
  static bool take(const nlohmann::json& from, std::map<std::string, T>& to) {
    if (!from.is_object()) return false;
    for (const auto& [key, item] : from.items()) {
      T value{};
      if (take_any(item, value)) to[key] = std::move(value);
    }
    return true;
  }
  static bool take(const nlohmann::json& from,
                   std::variant<std::int64_t, double, std::string>& to) {
    if (from.is_number_integer())
      to = from.get<std::int64_t>();
    else if (from.is_number())
      to = from.get<double>();
    else
      to = plain(from);
    return true;
  }
  static bool take(const nlohmann::json& from, std::shared_ptr<const JobSpec>& to) {
    if (!from.is_object()) return false;
    to = std::make_shared<const JobSpec>(known_part(from));
    return true;
  }

  // Cases: most say how a value is written or refused, which does not matter here.
  template <class Case>
  static void take_case(const nlohmann::json& from, const Case& field) {
    if constexpr (requires { field.field; })
      take_case(from, field.field);
    else
      take(from, field.value);
  }
  static void take_case(const nlohmann::json&, Constant) {}
  template <class T>
  static void take_case(const nlohmann::json& from, const Indices<T>& field) {
    if (!from.is_string()) return;
    if (auto parsed = parse_array(from.get<std::string>()))
      field.value = std::move(parsed->indices);
  }
  template <class T>
  static void take_case(const nlohmann::json& from, const ByName<T>& field) {
    if (!from.is_object()) return;
    for (std::size_t i = 0; i < field.names.size(); ++i) {
      const auto found = from.find(field.names[i]);
      if (found != from.end()) take(*found, field.values[i]);
    }
  }
  template <class T, class Rows>
  static void take_case(const nlohmann::json& from, const ByTable<T, Rows>& field) {
    if (!from.is_object()) return;
    for (const auto& row : field.rows) {
      const auto found = from.find(row.name);
      if (found != from.end()) take(*found, field.object.*row.field);
    }
  }

 private:
  template <class T>
  static bool fits(const nlohmann::json& from) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return true;
    if (from.is_number_unsigned())
      return from.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max());
    if (from.is_number_integer())
      return std::is_signed_v<T> &&
             from.get<std::int64_t>() >= static_cast<std::int64_t>(Limits::min());
    const auto value = from.get<double>();  // casting one that is out of range is undefined
    return value >= static_cast<double>(Limits::min()) &&
           value < static_cast<double>(Limits::max());
  }
  template <Named E>
  static bool take_name(const nlohmann::json& from, E& to) {
    if (!from.is_string()) return false;
    const auto value = value_of<E>(from.get_ref<const std::string&>());
    if (value)
      to = *value;
    else if constexpr (requires { Names<E>::kUnknown; })
      to = Names<E>::kUnknown;
    else
      return false;
    return true;
  }
  static std::string plain(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  /// In a map of texts every value has one.
  template <class T>
  static bool take_any(const nlohmann::json& from, T& to) {
    if constexpr (std::is_same_v<T, std::string>)
      return to = plain(from), true;
    else
      return take(from, to);
  }

  const nlohmann::json& from_;
};

/// What of it makes sense; the rest stays as it was.
template <Described T>
void read(const nlohmann::json& from, T& to) {
  Reader reader(from);
  Fields<T>::visit(to, reader);
}

/// `Source` has, by key: text, needed_text, flag, whole, needed_whole, number, numbers, texts, map,
/// choice (see api/body.h, training/message.cpp) and kTextBytes, the longest text unless told.
template <class Source>
class StrictReader {
 public:
  explicit StrictReader(Source& source) : source_(source) {}

  template <class T>
  void operator()(std::string_view key, T&& place, std::string_view = {}) {
    read(key, as_field(std::forward<T>(place)));
  }

 private:
  template <class T>
  struct Inner {
    using type = T;
  };
  template <class T>
  struct Inner<std::optional<T>> {
    using type = T;
  };
  template <class T>
  static constexpr bool kIsText = std::is_same_v<typename Inner<T>::type, std::string>;

  template <class T>
  void set(T& to, auto&& value) {
    if (value) to = static_cast<typename Inner<T>::type>(*std::forward<decltype(value)>(value));
  }

  template <class T>
  void read(std::string_view key, Plain<T> field) {
    using V = typename Inner<T>::type;
    if constexpr (std::is_same_v<V, std::string>)
      set(field.value, source_.text(key, Source::kTextBytes));
    else if constexpr (std::is_same_v<V, bool>)
      set(field.value, source_.flag(key));
    else if constexpr (Named<V>)
      set(field.value, choice<V>(key));
    else
      field.value = source_.map(key);
  }
  /// A case that refuses nothing.
  template <class Case>
  void read(std::string_view key, const Case& field) {
    read(key, as_field(field.value));
  }
  template <class T, class Bound>
  void read(std::string_view key, Within<T, Bound> field) {
    if constexpr (std::is_floating_point_v<typename Inner<T>::type>)
      set(field.value, source_.number(key, field.low, field.high));
    else
      set(field.value, source_.whole(key, field.low, field.high));
  }
  template <class T>
  void read(std::string_view key, AtMost<T> field) {
    if constexpr (kIsText<T>)
      set(field.value, source_.text(key, field.most));
    else if constexpr (std::is_same_v<typename Inner<T>::type, std::vector<std::string>>)
      read_texts(key, field.value, field.most);
    else
      field.value = source_.numbers(key, field.most);
  }
  void read(std::string_view, Constant) {}
  template <class T>
  void read(std::string_view key, OneOrMany<T> field) {
    read_texts(key, field.value, field.most);
  }
  template <class T>
  void read_texts(std::string_view key, T& to, std::size_t most) {
    if (source_.has(key)) to = source_.texts(key, most);
  }
  template <class Field>
  void read(std::string_view key, Needed<Field> field) {
    read_needed(key, field.field);
  }
  template <class T>
  void read_needed(std::string_view key, Plain<T> field) {
    if constexpr (Named<T>)
      set(field.value, needed_choice<T>(key));
    else
      field.value = source_.needed_text(key);
  }
  template <class T>
  void read_needed(std::string_view key, OneOf<T> field) {
    field.value = source_.needed_text(key);
  }
  template <class T, class Bound>
  void read_needed(std::string_view key, Within<T, Bound> field) {
    field.value = static_cast<T>(source_.needed_whole(key, field.high));
  }
  template <class E>
  std::optional<E> choice(std::string_view key) {
    static constexpr auto kWords = words<E>();
    const auto name = source_.choice(key, kWords);
    return name ? value_of<E>(*name) : std::nullopt;
  }
  template <class E>
  std::optional<E> needed_choice(std::string_view key) {
    static constexpr auto kWords = words<E>();
    const auto name = source_.needed_choice(key, kWords);
    return name ? value_of<E>(*name) : std::nullopt;
  }

  Source& source_;
};

template <Described T, class Source>
void read_strictly(Source& source, T& to) {
  StrictReader<Source> reader(source);
  Fields<T>::visit(to, reader);
}

}  // namespace berth::wire
