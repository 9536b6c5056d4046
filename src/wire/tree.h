// Writes small messages whose keys are sorted and whose texts may hold bytes that are no UTF-8
// (they are replaced): events, explanations, requests, training messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "wire/writer.h"

namespace berth::wire {

/// What a JsonWriter does, as a tree.
class Tree {
 public:
  void begin_object() { begin(nlohmann::json::object()); }
  void begin_array() { begin(nlohmann::json::array()); }
  void end_object() { open_.pop_back(); }
  void end_array() { open_.pop_back(); }
  void key(std::string_view name) { key_ = name; }
  void null() { add(nlohmann::json()); }
  template <class T>
  void value(const T& content) {
    add(nlohmann::json(content));
  }
  void raw(const std::string& json) { add(nlohmann::json::parse(json)); }

  [[nodiscard]] std::string text() const {
    return root_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  nlohmann::json& add(nlohmann::json item) {
    if (open_.empty()) return root_ = std::move(item);
    nlohmann::json& into = *open_.back();
    if (into.is_object()) return into[key_] = std::move(item);
    into.push_back(std::move(item));
    return into.back();
  }
  void begin(nlohmann::json empty) { open_.push_back(&add(std::move(empty))); }

  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  // an open one is the last of its parent: it does not move
  std::string key_;
};

/// Keys sorted, bytes that are no UTF-8 replaced.
template <Described T>
[[nodiscard]] std::string to_sorted_json(const T& message) {
  Tree out;
  Writer<Tree>(out).write(message);
  return out.text();
}

}  // namespace berth::wire
