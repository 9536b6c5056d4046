#include "wire/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth::wire {

namespace {

using nlohmann::json;
using Kind = Shape::Kind;

template <class Visit>
void for_each_named(const Shape& shape, Visit visit) {
  for (const Shape& inner : shape.inside) for_each_named(inner, visit);
  for (const Shape::Field& field : shape.fields) for_each_named(field.shape, visit);
  if (!shape.name.empty() && !shape.is_foreign) visit(shape);
}

json schema_of(const Shape& shape);

/// A named type is told once; whoever holds it refers to it.
json reference_or_schema(const Shape& shape) {
  if (shape.name.empty()) return schema_of(shape);
  return {{"$ref", "#/components/schemas/" + shape.name}};
}

void add_fields(json& schema, const Shape& shape) {
  json properties = json::object();
  json needed = json::array();
  for (const Shape::Field& field : shape.fields) {
    json property = reference_or_schema(field.shape);
    if (!field.meaning.empty() && field.shape.name.empty()) property["description"] = field.meaning;
    if (field.is_needed) needed.push_back(field.key);
    properties[field.key] = std::move(property);
  }
  if (!shape.fields.empty()) schema["properties"] = std::move(properties);
  if (!needed.empty()) schema["required"] = std::move(needed);
}

json schema_of(const Shape& shape) {
  json schema = json::object();
  switch (shape.kind) {
    case Kind::Boolean: schema["type"] = "boolean"; break;
    case Kind::Integer: schema["type"] = "integer"; break;
    case Kind::Number: schema["type"] = "number"; break;
    case Kind::Text: schema["type"] = "string"; break;
    case Kind::List:
      schema["type"] = "array";
      schema["items"] = reference_or_schema(shape.inside.front());
      if (shape.length > 0) schema["minItems"] = schema["maxItems"] = shape.length;
      break;
    case Kind::Map:
      schema["type"] = "object";
      schema["additionalProperties"] = reference_or_schema(shape.inside.front());
      break;
    case Kind::Object:
      schema["type"] = "object";
      add_fields(schema, shape);
      break;
    case Kind::Either:
      for (const Shape& one : shape.inside) schema["oneOf"].push_back(reference_or_schema(one));
      break;
  }
  if (!shape.meaning.empty()) schema["description"] = shape.meaning;
  if (shape.low) schema["minimum"] = *shape.low;
  if (shape.high) schema["maximum"] = *shape.high;
  if (!shape.words.empty()) schema["enum"] = shape.words;
  if (shape.is_nullable) {
    schema["nullable"] = true;
    if (!shape.words.empty()) schema["enum"].push_back(nullptr);
  }
  return schema;
}

std::string type_of(const Shape& shape);

std::string plain_type(const Shape& shape) {
  if (!shape.name.empty()) return shape.name;
  switch (shape.kind) {
    case Kind::Boolean: return "boolean";
    case Kind::Integer:
    case Kind::Number: return "number";
    case Kind::Text: break;
    case Kind::List: {
      const std::string inner = type_of(shape.inside.front());
      if (shape.length > 0)
        return fmt::format("[{}]", fmt::join(std::vector<std::string>(shape.length, inner), ", "));
      return inner.find(" | ") == std::string::npos ? inner + "[]" : "(" + inner + ")[]";
    }
    case Kind::Map: return fmt::format("Record<string, {}>", type_of(shape.inside.front()));
    case Kind::Object: {
      std::string text = "{ ";
      for (const Shape::Field& field : shape.fields)
        text += fmt::format("{}?: {}; ", field.key, type_of(field.shape));
      return text + "}";
    }
    case Kind::Either: {
      std::vector<std::string> types;
      for (const Shape& one : shape.inside)
        if (std::string type = type_of(one); std::ranges::find(types, type) == types.end())
          types.push_back(std::move(type));
      return fmt::format("{}", fmt::join(types, " | "));
    }
  }
  std::string text;
  for (const std::string& word : shape.words)
    text += fmt::format("{}'{}'", text.empty() ? "" : " | ", word);
  return text.empty() ? "string" : text;
}

std::string type_of(const Shape& shape) {
  return plain_type(shape) + (shape.is_nullable ? " | null" : "");
}

/// A page may be older or newer than its data: every field may be missing.
std::string interface_of(const Shape& shape) {
  if (shape.kind != Kind::Object) {
    Shape in_place = shape;
    in_place.name.clear();
    in_place.is_nullable = false;
    return fmt::format("export type {} = {};\n", shape.name, type_of(in_place));
  }
  std::string text = shape.meaning.empty() ? "" : fmt::format("/** {} */\n", shape.meaning);
  text += fmt::format("export interface {} {{\n", shape.name);
  for (const Shape::Field& field : shape.fields) {
    if (!field.meaning.empty()) text += fmt::format("  /** {} */\n", field.meaning);
    text +=
        fmt::format("  {}{}: {};\n", field.key, field.is_needed ? "" : "?", type_of(field.shape));
  }
  return text + "}\n";
}

}  // namespace

json openapi_schemas(std::span<const Shape> messages) {
  json all = json::object();
  for (const Shape& message : messages) {
    for_each_named(message, [&](const Shape& shape) {
      json schema = schema_of(shape);
      // Who may be null somewhere says so in its own schema: a reference cannot.
      if (const auto known = all.find(shape.name);
          known == all.end() || (shape.is_nullable && !known->contains("nullable")))
        all[shape.name] = std::move(schema);
    });
  }
  return all;
}

std::string typescript(std::span<const Shape> messages) {
  std::string text;
  std::vector<std::string> known;
  for (const Shape& message : messages) {
    for_each_named(message, [&](const Shape& shape) {
      if (std::ranges::find(known, shape.name) != known.end()) return;
      known.push_back(shape.name);
      text += (text.empty() ? "" : "\n") + interface_of(shape);
    });
  }
  return text;
}

}  // namespace berth::wire
