// Writes JSON into a string, in order, without building a tree: large reports stay cheap. Commas
// and quotes are its job; balance (begin/end) is the caller's and is checked. Numbers print the
// shortest text that reads back equal; NaN and infinity become null.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(const std::string& text) { return value(std::string_view{text}); }
  JsonWriter& value(double number);
  JsonWriter& value(bool flag);
  JsonWriter& null();
  /// Text that is JSON already, taken as it is.
  JsonWriter& raw(std::string_view json);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T number) {
    if constexpr (std::signed_integral<T>)
      return integer(static_cast<std::int64_t>(number));
    else
      return unsigned_integer(static_cast<std::uint64_t>(number));
  }
  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  /// The finished text; every begin must have its end.
  [[nodiscard]] const std::string& str() const;
  /// The same, handed over.
  [[nodiscard]] std::string take();

 private:
  JsonWriter& integer(std::int64_t number);
  JsonWriter& unsigned_integer(std::uint64_t number);
  void separate();

  std::string out_;
  std::vector<bool> needs_comma_;
  bool after_key_ = false;
};

}  // namespace berth
