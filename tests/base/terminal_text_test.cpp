// Text that others wrote, on a terminal: nothing of it commands, turns, hides or breaks a line.
#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include <set>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/prometheus.h"
#include "base/text_table.h"

namespace berth {
namespace {

std::string utf8(char32_t code) {
  std::string text;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0U | (code >> 6U));
    add(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    add(0xE0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  } else {
    add(0xF0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3FU));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  }
  return text;
}

TEST(TerminalText, EveryControlBecomesAQuestionMark) {
  std::set<char32_t> unsafe;
  for (char32_t code = 0; code < 0x20; ++code) unsafe.insert(code);
  for (char32_t code = 0x7F; code < 0xA0; ++code) unsafe.insert(code);  // delete and the second set
  for (char32_t code = 0x202A; code <= 0x202E; ++code) unsafe.insert(code);  // direction
  for (char32_t code = 0x2066; code <= 0x2069; ++code) unsafe.insert(code);
  for (const char32_t code : {0x200BU, 0x200CU, 0x200DU, 0x200EU, 0x200FU, 0x2028U, 0x2029U,
                              0x2060U, 0xFEFFU, 0x61CU, 0xADU, 0xE0041U})
    unsafe.insert(code);
  for (const char32_t code : unsafe) {
    EXPECT_TRUE(is_unsafe(code)) << std::hex << static_cast<std::uint32_t>(code);
    EXPECT_EQ(harmless("a" + utf8(code) + "b"), "a?b") << std::hex << static_cast<unsigned>(code);
  }
}

TEST(TerminalText, OrdinaryTextStaysAsItIs) {
  for (const std::string text : {"", "plain ~", "Zürich", "обучение", "训练", "שלום", "نموذج",
                                 "e\xcc\x81t\xc3\xa9", "😀 done"})
    EXPECT_EQ(harmless(text), text);
  for (char32_t code = 0x20; code <= 0x10FFFF; ++code) {
    if (is_unsafe(code) || (code >= 0xD800 && code <= 0xDFFF)) continue;
    ASSERT_EQ(harmless(utf8(code)), utf8(code)) << static_cast<unsigned>(code);
  }
}

TEST(TerminalText, WhatIsNoUtf8IsNotPassedOn) {
  EXPECT_EQ(harmless("\x9b"), "?") << "the second set as a byte";
  EXPECT_EQ(harmless("a\xff\xfe"), "a??");
  EXPECT_EQ(harmless("\xc0\x9b"), "??") << "overlong";
  EXPECT_EQ(harmless("\xe0\x80\x9b"), "???");
  EXPECT_EQ(harmless("\xf0\x80\x80\x9b"), "????");
  EXPECT_EQ(harmless("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(harmless("\xf4\x90\x80\x80"), "????") << "beyond the last character";
  EXPECT_EQ(harmless("caf\xc3"), "caf?") << "cut off";
  EXPECT_EQ(harmless("\xe2\x80"), "??");
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const std::string plain = harmless(text);
      for (std::size_t i = 0; i < plain.size();) {
        const Character character = first_character(std::string_view(plain).substr(i));
        ASSERT_TRUE(character.is_valid && !is_unsafe(character.code)) << first << " " << second;
        i += character.bytes;
      }
    }
  }
}

TEST(TerminalText, JsonMeansWhatItMeant) {
  const std::string name = "a\xc2\x9b\x7f" + utf8(0x202E) + utf8(0xE0041) + "ü\n\"";
  const nlohmann::json json{{"name", name}};
  const std::string shown = harmless_json(json.dump(2));
  EXPECT_EQ(nlohmann::json::parse(shown), json);
  EXPECT_NE(shown.find("\\u009b\\u007f\\u202e\\udb40\\udc41ü"), std::string::npos) << shown;
  EXPECT_NE(shown.find('\n'), std::string::npos) << "between values a line break is one";
}

TEST(TerminalText, WidthsAreThoseOfTheTerminal) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("训练"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3U);
  EXPECT_EQ(display_width(harmless("a\xc2\x9b\xff")), 3U);
  TextTable table({{"name", Align::Left}, {"n", Align::Right}});
  table.add_row({"训练", "1"});
  table.add_row({"abc", "2"});
  EXPECT_EQ(table.str(), "name  n\n----  -\n训练  1\nabc   2\n");
}

TEST(TerminalText, LogsAndMeasurementsAreReadOnTerminalsToo) {
  const std::string name = "x\xc2\x9b" + utf8(0x202E) + utf8(0x2028);
  EXPECT_EQ(log_line(LogFormat::Text, LogLevel::Info, 0, "p", "m", {{"name", name}}),
            "info  1970-01-01T00:00:00.000Z p m name=x\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x80\\xa8");
  EXPECT_EQ(log_line(LogFormat::Json, LogLevel::Info, 0, "p", "m", {{"name", name}}),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"part\":\"p\",\"message\":"
            "\"m\",\"name\":\"x\\u009b\\u202e\\u2028\"}");
  PrometheusText text;
  text.family(PrometheusText::Kind::Gauge, "g", "h").sample(1, {{"node", name}});
  EXPECT_EQ(text.str(), "# HELP g h\n# TYPE g gauge\ng{node=\"x\\\\u009b\\\\u202e\\\\u2028\"} 1\n");
}

}  // namespace
}  // namespace berth
