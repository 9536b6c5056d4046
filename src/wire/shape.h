// What a description looks like from outside, for documents: the shape of a message as a tree, and
// its two spellings, OpenAPI 3.0 schemas and TypeScript interfaces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/job_spec.h"
#include "wire/describe.h"

namespace berth::wire {

struct Shape {
  enum class Kind : std::uint8_t { Boolean, Integer, Number, Text, List, Map, Object, Either };
  struct Field;

  Kind kind = Kind::Text;
  std::string name{};     // of a type that is described once for all; empty: in place
  std::string meaning{};  // of the type
  bool is_nullable = false;
  bool is_foreign = false;  // its fields are described elsewhere
  std::optional<std::int64_t> low{}, high{};
  std::size_t length = 0;            // of a list: exactly so many; 0: any number
  std::vector<std::string> words{};  // of a text that is one of them
  std::vector<Shape> inside{};       // of a list and a map: one; of an either: all
  std::vector<Field> fields;         // of an object (no {}: clang would need Field complete here)
};
struct Shape::Field {
  std::string key;
  std::string meaning;
  bool is_needed = false;   // in a request
  bool may_be_out = false;  // in an answer
  Shape shape;
};

/// {"Job":{…},…}: these, and every named type inside them.
[[nodiscard]] nlohmann::json openapi_schemas(std::span<const Shape> messages);
/// export interface Job {…}: the same in TypeScript, each after those it needs.
[[nodiscard]] std::string typescript(std::span<const Shape> messages);

/// Something to visit; one that is not default-constructible has an example in its Fields.
template <class T>
[[nodiscard]] T example_of() {
  if constexpr (requires { Fields<T>::example(); })
    return Fields<T>::example();
  else
    return T{};
}

class ShapeMaker {
 public:
  template <class T>
  void operator()(std::string_view key, T&& place, std::string_view meaning = {}) {
    Shape::Field field{.key = std::string(key), .meaning = std::string(meaning), .shape = {}};
    fill(field, as_field(std::forward<T>(place)));
    fields_.push_back(std::move(field));
  }

  template <class T>
  static Shape of(const T& value) {
    Shape shape;
    if constexpr (std::is_same_v<T, bool>)
      shape.kind = Shape::Kind::Boolean;
    else if constexpr (std::is_integral_v<T>)
      shape.kind = Shape::Kind::Integer;
    else if constexpr (std::is_floating_point_v<T>)
      shape.kind = Shape::Kind::Number;
    else if constexpr (Named<T>)
      return of_enum<T>();
    else if constexpr (Described<T>)
      return of_object(value);
    return shape;
  }
  template <class T>
  static Shape of(const std::optional<T>&) {
    Shape shape = of(example_of<T>());
    shape.is_nullable = true;
    return shape;
  }
  template <class T>
  static Shape of(const std::vector<T>&) {
    return around(Shape::Kind::List, of(example_of<T>()));
  }
  template <class T>
  static Shape of(const std::vector<std::pair<std::string, T>>&) {
    return around(Shape::Kind::Map, of(example_of<T>()));
  }
  template <class T>
  static Shape of(const std::map<std::string, T>&) {
    return around(Shape::Kind::Map, of(example_of<T>()));
  }
  template <class T, std::size_t kSize>
  static Shape of(const std::array<T, kSize>&) {
    Shape shape = around(Shape::Kind::List, of(example_of<T>()));
    shape.length = kSize;
    return shape;
  }
  template <class... T>
  static Shape of(const std::variant<T...>&) {
    Shape shape;
    shape.kind = Shape::Kind::Either;
    shape.inside = {of(example_of<T>())...};
    return shape;
  }
  static Shape of(const std::shared_ptr<const JobSpec>&) {
    Shape shape;
    shape.kind = Shape::Kind::Object;
    shape.name = "JobSpec";
    shape.is_foreign = true;
    return shape;
  }

 private:
  template <class E>
  static Shape of_enum() {
    Shape shape;
    shape.name = Names<E>::kName;
    for (const std::string_view word : words<E>()) shape.words.emplace_back(word);
    return shape;
  }
  template <class T>
  static Shape of_object(const T& value) {
    Shape shape;
    shape.kind = Shape::Kind::Object;
    shape.name = Fields<T>::kName;
    if constexpr (requires { Fields<T>::kMeaning; }) shape.meaning = Fields<T>::kMeaning;
    ShapeMaker maker;
    Fields<T>::visit(value, maker);
    shape.fields = std::move(maker.fields_);
    return shape;
  }
  static Shape around(Shape::Kind kind, Shape inside) {
    Shape shape;
    shape.kind = kind;
    shape.inside.push_back(std::move(inside));
    return shape;
  }

  template <class T>
  static void fill(Shape::Field& field, Plain<T> place) {
    field.shape = of(std::as_const(place.value));
  }
  template <class T>
  static void fill(Shape::Field& field, OrNull<T> place) {
    field.shape = of(std::as_const(place.value));
    field.shape.is_nullable = true;
  }
  template <class T>
  static void fill(Shape::Field& field, IfAny<T> place) {
    field.shape = of(std::as_const(place.value));
    field.shape.is_nullable = false;
    field.may_be_out = true;
  }
  template <class T>
  static void fill(Shape::Field& field, OneOf<T> place) {
    for (const std::string_view word : place.words) field.shape.words.emplace_back(word);
  }
  template <class E, class T>
  static void fill(Shape::Field& field, WordOf<E, T>) {
    field.shape = of_enum<E>();
    field.shape.is_nullable = true;
  }
  template <class T>
  static void fill(Shape::Field& field, ByName<T> place) {
    field.shape.kind = Shape::Kind::Object;
    for (const std::string_view name : place.names)
      field.shape.fields.push_back(
          {.key = std::string(name), .meaning = {}, .shape = of(place.values[0])});
  }
  template <class T>
  static void fill(Shape::Field&, Indices<T>) {}
  template <class T, class Bound>
  static void fill(Shape::Field& field, Within<T, Bound> place) {
    field.shape = of(std::as_const(place.value));
    field.shape.is_nullable = false;
    if constexpr (std::is_integral_v<Bound>) {
      if (place.high < (std::int64_t{1} << 31U)) {
        field.shape.low = place.low;
        field.shape.high = place.high;
      }
    }
  }
  template <class T>
  static void fill(Shape::Field& field, AtMost<T> place) {
    fill(field, IfAny<T>{place.value});
  }
  static void fill(Shape::Field& field, Constant place) {
    field.shape.words.emplace_back(place.text);
  }
  template <class T>
  static void fill(Shape::Field& field, OneOrMany<T> place) {
    field.shape.kind = Shape::Kind::Either;
    const Shape list = of(std::as_const(place.value));
    field.shape.inside = {list.inside.front(), list};
  }
  template <class Inner>
  static void fill(Shape::Field& field, Needed<Inner> place) {
    fill(field, place.field);
    field.is_needed = true;
  }
  template <class Inner>
  static void fill(Shape::Field& field, Kept<Inner> place) {
    fill(field, place.field);
  }
  template <class Inner>
  static void fill(Shape::Field& field, NotBrief<Inner> place) {
    fill(field, place.field);
  }
  template <class Inner>
  static void fill(Shape::Field& field, OnlyBrief<Inner> place) {
    fill(field, place.field);
    field.may_be_out = true;
  }
  template <class Rows, class Get>
  static void fill(Shape::Field& field, Column<Rows, Get> place) {
    using Row = decltype(*std::begin(place.rows));
    using Value = std::remove_cvref_t<decltype(place.get(std::declval<Row>()))>;
    field.shape = around(Shape::Kind::List, of(example_of<Value>()));
  }
  template <class T, class Rows>
  static void fill(Shape::Field& field, const ByTable<T, Rows>& place) {
    const auto& first = *std::begin(place.rows);
    field.shape = around(Shape::Kind::Map, of(std::as_const(place.object.*first.field)));
  }

  std::vector<Shape::Field> fields_;
};

template <Described T>
[[nodiscard]] Shape shape_of() {
  return ShapeMaker::of(example_of<T>());
}

}  // namespace berth::wire
