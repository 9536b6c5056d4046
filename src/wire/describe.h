// How a message is described: once. Fields<T> names every field of T (key, place, meaning), and
// whatever needs to know them is a visitor of that: Writer (writer.h), Reader and StrictReader
// (reader.h), shape_of (shape.h: OpenAPI and TypeScript). A new field is one line.
//
//   template <>
//   struct Fields<QueueView> {
//     static constexpr std::string_view kName = "Queue";  // in the document; empty: described in
//     place template <class Queue, class Visit>                 // QueueView or const QueueView
//     static void visit(Queue& q, Visit& v) {
//       v("name", q.name);
//       v("max_time_limit", q.max_time_limit, "seconds; 0: none");
//     }
//   };
//
// A place is a truth, a number, a text, an enum with Names, another described struct, an optional
// (null without), a vector, a map (or a vector of pairs, which keeps its order), an array (a
// tuple), a variant (either), or one of those in one of the cases below, which say more about it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace berth::wire {

/// Specialised for every message; see above.
template <class T>
struct Fields;
template <class T>
concept Described = requires {
  Fields<std::remove_cv_t<T>>::kName;
};

/// Specialised for every enum that is told by name: kAll is an array of {value, name}, kName the
/// name of its type in the document (empty: described in place). With a kUnknown, that is what
/// readers make of a word they do not know; otherwise they leave what was there.
template <class E>
struct Names;
template <class E>
concept Named = std::is_enum_v<E> && requires {
  Names<E>::kAll;
};

template <Named E>
[[nodiscard]] constexpr std::string_view name_of(E value) noexcept {
  for (const auto& [known, name] : Names<E>::kAll)
    if (known == value) return name;
  return "unknown";
}
template <Named E>
[[nodiscard]] constexpr std::optional<E> value_of(std::string_view text) noexcept {
  for (const auto& [known, name] : Names<E>::kAll)
    if (name == text) return known;
  return std::nullopt;
}
template <Named E>
[[nodiscard]] constexpr auto words() noexcept {
  std::array<std::string_view, Names<E>::kAll.size()> all{};
  std::ranges::transform(Names<E>::kAll, all.begin(), [](const auto& row) { return row.second; });
  return all;
}

// Cases. Each holds references and lives as long as the visit of its field.

template <class T>
struct Plain {
  T& value;
};
/// Null while it is this: 0 or empty unless told. Not yet, never, nobody.
template <class T>
struct OrNull {
  T& value;
  std::remove_const_t<T> none;
};
/// The key is left out while it is 0, empty or absent.
template <class T>
struct IfAny {
  T& value;
};
/// A text that is one of these, as far as we know: others are taken, too.
template <class T>
struct OneOf {
  T& value;
  std::span<const std::string_view> words;
};
/// A text that is the name of an E; null while it is empty. For readers that show what they do not
/// know.
template <class E, class T>
struct WordOf {
  T& value;
};
/// An array as an object: its n-th value under the n-th name.
template <class T>
struct ByName {
  T& values;
  std::span<const std::string_view> names;
};
/// Indices as people write them: "0-3,7".
template <class T>
struct Indices {
  T& value;
};
/// A number that is refused outside of these bounds.
template <class T, class Bound>
struct Within {
  T& value;
  Bound low, high;
};
/// A text of so many bytes, a list of so many items.
template <class T>
struct AtMost {
  T& value;
  std::size_t most;
};
/// Always this: what kind of message it is.
struct Constant {
  std::string_view text;
};
/// A list; a single item may stand for a list of one.
template <class T>
struct OneOrMany {
  T& value;
  std::size_t most;
};
/// A request without it is refused.
template <class Field>
struct Needed {
  Field field;
};
/// Told also in a brief row (Detail::Brief), whatever it is; unless it makes no sense there.
template <class Field>
struct Kept {
  Field field;
  bool makes_sense;
};
template <class Field>
struct NotBrief {
  Field field;
};
template <class Field>
struct OnlyBrief {
  Field field;
};
/// One value of each row, as a list.
template <class Rows, class Get>
struct Column {
  const Rows& rows;
  Get get;
};
/// An object with an entry for each row of a table that has a name and a member: numbers that are
/// listed elsewhere. Under an empty key they stand beside the other fields.
template <class T, class Rows>
struct ByTable {
  T& object;
  Rows rows;
};

/// A member is a plain field; a case is itself.
template <class T>
[[nodiscard]] constexpr Plain<T> as_field(T& value) noexcept {
  return {value};
}
template <class Case>
requires(!std::is_lvalue_reference_v<Case>) [[nodiscard]] constexpr Case
    as_field(Case&& field) noexcept {
  return field;
}
template <class T>
using FieldOf = decltype(as_field(std::declval<T>()));

template <class T>
[[nodiscard]] constexpr OrNull<T> or_null(T& value, std::remove_const_t<T> none = {}) noexcept {
  return {value, std::move(none)};
}
template <class T>
[[nodiscard]] constexpr IfAny<T> if_any(T& value) noexcept {
  return {value};
}
template <class T>
[[nodiscard]] constexpr OneOf<T> one_of(T& value,
                                        std::span<const std::string_view> words) noexcept {
  return {value, words};
}
template <class E, class T>
[[nodiscard]] constexpr WordOf<E, T> word_of(T& value) noexcept {
  return {value};
}
template <class T>
[[nodiscard]] constexpr ByName<T> by_name(T& values,
                                          std::span<const std::string_view> names) noexcept {
  return {values, names};
}
template <class T>
[[nodiscard]] constexpr Indices<T> indices(T& value) noexcept {
  return {value};
}
template <class T, class Bound>
[[nodiscard]] constexpr Within<T, Bound> within(T& value, Bound low, Bound high) noexcept {
  return {value, low, high};
}
template <class T>
[[nodiscard]] constexpr AtMost<T> at_most(T& value, std::size_t most) noexcept {
  return {value, most};
}
template <class T>
[[nodiscard]] constexpr OneOrMany<T> one_or_many(T& value, std::size_t most) noexcept {
  return {value, most};
}
[[nodiscard]] constexpr Constant constant(std::string_view text) noexcept { return {text}; }
template <class T>
[[nodiscard]] constexpr auto needed(T&& field) noexcept {
  return Needed<FieldOf<T&&>>{as_field(std::forward<T>(field))};
}
template <class T>
[[nodiscard]] constexpr auto kept(T&& field, bool makes_sense = true) noexcept {
  return Kept<FieldOf<T&&>>{as_field(std::forward<T>(field)), makes_sense};
}
template <class T>
[[nodiscard]] constexpr auto not_brief(T&& field) noexcept {
  return NotBrief<FieldOf<T&&>>{as_field(std::forward<T>(field))};
}
template <class T>
[[nodiscard]] constexpr auto only_brief(T&& field) noexcept {
  return OnlyBrief<FieldOf<T&&>>{as_field(std::forward<T>(field))};
}
template <class Rows, class Get>
[[nodiscard]] constexpr Column<Rows, Get> column(const Rows& rows, Get get) noexcept {
  return {rows, get};
}
template <class T, class Rows>
[[nodiscard]] constexpr ByTable<T, Rows> by_table(T& object, Rows rows) noexcept {
  return {object, rows};
}

/// 0, empty, absent, the first of an enum.
template <class T>
[[nodiscard]] constexpr bool is_none(const T& value) noexcept {
  if constexpr (requires { value.empty(); })
    return value.empty();
  else if constexpr (requires { value.has_value(); })
    return !value.has_value();
  else if constexpr (Described<T>)
    return false;
  else
    return value == T{};
}

}  // namespace berth::wire
